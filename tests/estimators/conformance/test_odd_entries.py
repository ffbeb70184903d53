"""What is no number is refused before NumPy makes one of it, and named."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_selector

from manykernels import MKSVC
from manykernels.gating.features import GatingFeatures
from manykernels.kernels import RBF, Linear
from tests.estimators.registry import every_estimator, refused

M = 20
rng = np.random.default_rng(0)
X = rng.normal(size=(M, 3))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


# -- tables ----------------------------------------------------------------------------------

DAYS = np.datetime64("2020-01-01") + np.arange(3 * M).reshape(M, 3)
MASKED = np.ma.masked_array(X, np.arange(3 * M).reshape(M, 3) == 7)
MIXED = np.array([[1.0, 2.0, 3.0]] * M, dtype=object)
MIXED[4, 2] = "four"
ODD_TABLES = {
    "complex": (X + 1j, "Complex data not supported: X holds complex numbers"),
    "complex list": ((X + 1j).tolist(), "Complex data not supported: X holds complex numbers"),
    "dates": (DAYS, "X holds dates .* not real numbers: subtract one and divide by a unit"),
    "times": (DAYS - DAYS[0, 0], "X holds differences of times .*: divide by a unit"),
    "masked": (MASKED, "X has a masked entry at 2, 1: missing values have to be filled in"),
    "text": (MIXED, "X does not hold numbers only: .*'four', at 4, 2"),
}


@every_estimator
@pytest.mark.parametrize("kind", ODD_TABLES)
def test_tables_of_what_is_no_number(entry, kind):
    table, message = ODD_TABLES[kind]
    with refused(message):
        entry.make().fit(table, entry.targets(Y))
    model = entry.make().fit(X, entry.targets(Y))
    with refused(message):
        model.predict(table)


def test_a_masked_array_without_a_masked_entry_is_an_array():
    model, expected = MKSVC().fit(np.ma.masked_array(X), Y), MKSVC().fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_numbers_among_objects_are_numbers():
    model, expected = MKSVC().fit(X.astype(object), Y), MKSVC().fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


# -- data frames -----------------------------------------------------------------------------

WORDS = ["u", "v"] * (M // 2)
ODD_COLUMNS = {
    "text": (WORDS, r"column 'odd' .* does not hold numbers only: .*'u', at 0\."),
    "category": (pd.Categorical(WORDS), r"column 'odd' \(category\) does not hold numbers only"),
    "dates": (pd.date_range("2020", periods=M), "column 'odd' .* holds dates"),
    "zoned dates": (pd.date_range("2020", periods=M, tz="UTC"), "column 'odd' .*numbers only"),
    "times": (pd.timedelta_range("1h", periods=M), "column 'odd' .*holds differences of times"),
    "complex": (np.full(M, 1j), "Complex data not supported: X: column 'odd' .*holds complex"),
}
WAY_OUT = r".* Choose the columns to compare, as in \w+\(\)\.on\(\['a', 'b'\]\), or encode it"


@every_estimator
@pytest.mark.parametrize("kind", ODD_COLUMNS)
def test_a_frame_with_a_column_that_holds_no_numbers(entry, kind):
    column, message = ODD_COLUMNS[kind]
    frame = FRAME.assign(odd=column)
    with refused("kernel 'linear': Linear: .*" + message + WAY_OUT):
        entry.make(Linear()).fit(frame, entry.targets(Y))
    if kind in ("text", "category"):
        assert "categories" in entry.make().fit(frame, entry.targets(Y)).kernel_names_
    else:
        with refused(message + WAY_OUT):
            entry.make().fit(frame, entry.targets(Y))
    numeric = [("wide", RBF().on(make_column_selector(dtype_include=np.float64)))]
    model = entry.make(numeric).fit(frame, entry.targets(Y))
    assert len(model.predict(frame)) == M
    if entry.localized:
        way_out = r".* Choose other columns, as in features="
        with refused("features of the gate: .*" + message + way_out):
            entry.make(numeric, features=slice(None)).fit(frame, entry.targets(Y))
        entry.make(numeric, features=["a", "b", "c"]).fit(frame, entry.targets(Y))


def test_the_kernel_that_compares_the_column_is_named():
    frame = FRAME.assign(word=WORDS)
    kernels = [("fine", RBF().on(["a"])), ("broken", RBF().on(["b", "word"]))]
    with refused("kernel 'broken': RBF: X: column 'word' .*does not hold numbers only"):
        MKSVC(kernels).fit(frame, Y)


def test_a_column_that_is_no_number_any_more_at_prediction():
    model = MKSVC(Linear()).fit(FRAME, Y)
    with refused(
        "column 'b' held numbers in training, and holds text now, the first 'u' at row 0"
    ):
        model.predict(FRAME.assign(b=WORDS))


def test_a_polars_frame():
    columns = {"a": X[:, 0], "flag": Y == 1}
    assert len(MKSVC().fit(pl.DataFrame(columns), Y).support_)
    with refused("column 'word' .*does not hold numbers only: .*, at 0"):
        MKSVC(Linear()).fit(pl.DataFrame({**columns, "word": WORDS}), Y)


def test_columns_of_one_name():
    frame = FRAME.assign(odd=WORDS)
    frame.columns = ["a", "a", "b", "b"]
    with refused("column 'b' .*does not hold numbers only: .*, at 0"):
        Linear().fit(frame)


def test_numeric_categories_and_flags_are_numbers():
    frame = FRAME.assign(code=pd.Categorical([1, 2] * (M // 2)), flag=Y == 1)
    assert len(MKSVC().fit(frame, Y).predict(frame)) == M


def test_features_of_a_gate():
    with refused("features of the gate: Complex data not supported: X holds complex"):
        GatingFeatures().fit(X + 1j)

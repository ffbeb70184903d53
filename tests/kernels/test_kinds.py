"""What columns held in training, and new rows brought to it."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import OneHotEncoder

from manykernels import MKFDA, MKSVC, ExactFeatures, MKRidge, auto_kernels, load, save
from manykernels.kernels import RBF, Categorical, Spectrum
from manykernels.kernels.columns import trained_columns
from tests.problems import slow

N = 60
RNG = np.random.default_rng(0)
CODES = RNG.choice(["1", "2", "A"], N, p=[0.23, 0.23, 0.54])
NUMBERS = RNG.normal(size=N).round(3)
LABELS = np.where((CODES == "1") | ((CODES == "2") & (NUMBERS > 0)), "yes", "no")
X = pd.DataFrame({"code": CODES, "size": NUMBERS, "note": [f"row {i % 7}" for i in range(N)]})
FEW = X[X["code"] != "A"]
KERNELS = [("code", Categorical().on("code")), ("size", RBF().on("size"))]


def fitted(kernels=None, table=X, **options):
    return MKFDA(kernels, **options).fit(table, LABELS)


def with_codes(codes):
    """The rows with 1 and 2, as another reader would have them."""
    return FEW.assign(code=codes)


TYPES = {
    "integers": int,
    "floats": float,
    "numbers of pandas": "Int64",
    "categories": "category",
    "texts of pandas": "string",
}


@pytest.mark.parametrize("kernels", [None, KERNELS, "encoder"])
@pytest.mark.parametrize("kind", TYPES)
def test_numbers_are_the_texts_that_training_had(kernels, kind):
    if kernels == "encoder":
        kernels = RBF().on("code").after(OneHotEncoder(handle_unknown="ignore"))
    model = fitted(kernels)
    new = with_codes(FEW["code"].astype(int).astype(TYPES[kind]))
    if kind in ("categories", "texts of pandas"):
        new = with_codes(FEW["code"].astype(TYPES[kind]))
    assert_array_equal(model.decision_function(new), model.decision_function(FEW))


@pytest.mark.parametrize("estimator", [*slow(MKFDA), MKSVC])
def test_every_kind_of_input(estimator):
    numbers = with_codes(FEW["code"].astype(int))
    expected = estimator(KERNELS).fit(X, LABELS).decision_function(FEW)
    polars = estimator(KERNELS).fit(pl.DataFrame(X), LABELS)
    assert_allclose(polars.decision_function(pl.DataFrame(numbers)), expected)
    views = estimator(KERNELS).fit({"v": X}, LABELS)
    assert_allclose(views.decision_function({"v": numbers}), expected)
    objects = estimator({"v": Categorical()}).fit({"v": X[["code"]].to_numpy(object)}, LABELS)
    assert_array_equal(
        objects.predict({"v": numbers[["code"]].to_numpy()}),
        objects.predict({"v": FEW[["code"]].to_numpy(object)}),
    )


def test_models_on_features_and_from_files(tmp_path):
    model = fitted([("code", Categorical().on("code"))], approximation=ExactFeatures())
    numbers = with_codes(FEW["code"].astype(int))
    expected = model.decision_function(FEW)
    assert_array_equal(model.decision_function(numbers), expected)
    save(model, tmp_path / "model.skops")
    assert_array_equal(load(tmp_path / "model.skops").decision_function(numbers), expected)


def test_rows_of_dask():
    model = fitted(KERNELS[:1], approximation=ExactFeatures())
    numbers = dd.from_pandas(with_codes(FEW["code"].astype(int)), npartitions=3)
    assert_array_equal(model.predict(numbers).compute(), model.predict(FEW))
    with pytest.raises(ValueError, match="column 'code' held text in training, and holds dates"):
        model.predict(
            dd.from_pandas(with_codes(pd.Timestamp("2020-01-01")), npartitions=2)
        ).compute()


@pytest.mark.parametrize("estimator", [MKFDA, *slow(MKSVC, MKRidge)])
@pytest.mark.parametrize("kernels", [None, KERNELS])
def test_an_answer_does_not_depend_on_other_rows(tmp_path, estimator, kernels):
    """Rows are written to a file and read again, so that types depend on what is in it."""
    y = NUMBERS if estimator is MKRidge else LABELS
    model = estimator(kernels).fit(X, y)
    every = model.predict(X)
    rng = np.random.default_rng(1)
    parts = [rng.choice(N, size, replace=False) for size in (1, 2, 5, 20)]
    parts += [np.flatnonzero(code == CODES) for code in "12A"]
    for rows in parts:
        X.iloc[rows].to_csv(tmp_path / "rows.csv", index=False)
        found = model.predict(pd.read_csv(tmp_path / "rows.csv"))
        if estimator is MKRidge:
            assert_allclose(found, every[rows], rtol=1e-12)
        else:
            assert_array_equal(found, every[rows])


# -- what cannot be converted ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            {"code": pd.Timestamp("2020-01-01")},
            "column 'code' held text in training, and holds da",
        ),
        ({"size": "large"}, "column 'size' held numbers in training, and holds text now, the fir"),
        ({"size": "1_000"}, "column 'size' held numbers in training, and holds text now"),
        ({"size": pd.Timestamp("2020-01-01")}, "column 'size' held numbers .*, and holds dates"),
        ({"new": 2}, "column 'new' held truth values in training, and holds numbers now, the f"),
        pytest.param(
            {"new": "maybe"},
            "column 'new' held truth values in training, and holds text now",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"colour": 3},
            "column 'colour' held text in training, and holds numbers now, .*dtype=s",
            marks=pytest.mark.slow,
        ),
        pytest.param({"number": "7"}, None, marks=pytest.mark.slow),
        pytest.param(
            {"number": "seven"},
            "column 'number' held numbers in training, and holds text now",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_other_kinds_are_named(change, match):
    table = X.assign(new=NUMBERS > 0, colour=np.where(NUMBERS > 0, "red", "blue"), number=7)
    kernels = [*KERNELS, ("rest", Categorical().on(["new", "colour", "number"]))]
    for one, new in (
        (table, table.assign(**change)),
        ({"v": table}, {"v": table.assign(**change)}),
    ):
        model = fitted(kernels, one)
        if match is None:
            assert_array_equal(model.predict(new), model.predict(one))
            continue
        with pytest.raises(ValueError, match=match if one is table else f"view 'v': {match}"):
            model.predict(new)


def test_numbers_as_text_and_truth_as_numbers_are_converted():
    table = X.assign(new=NUMBERS > 0)
    model = fitted(table=table)
    expected = model.decision_function(table)
    for change in (
        {"size": table["size"].map(str)},
        {"new": table["new"].astype(int)},
        {"new": table["new"].map(str)},
        {"new": table["new"].astype(object)},
    ):
        assert_array_equal(model.decision_function(table.assign(**change)), expected)


def test_texts_that_differ_but_are_one_number_are_ambiguous():
    table = X.assign(code=X["code"].map({"1": "007", "2": "B", "A": "A"}))
    with pytest.raises(ValueError, match="number 7 at row 0 may stand for '007': read the column"):
        fitted(table=table).predict(table.assign(code=7))
    table = X.assign(code=X["code"].map({"1": "1", "2": "1.0", "A": "A"}))
    with pytest.raises(ValueError, match=r"number 1 at row 0 may stand for '1' or '1\.0'"):
        fitted(KERNELS, table).predict(table.assign(code=1))
    # A float has no more digits than it was read with.
    table = X.assign(code=X["code"].map({"1": "1.0", "2": "2.0", "A": "A"}))
    model = fitted(KERNELS, table)
    numbers = table[table["code"] != "A"]
    again = numbers.assign(code=numbers["code"].astype(float))
    assert_array_equal(model.predict(again), model.predict(numbers))


def test_mixed_objects_are_compared_one_by_one():
    mixed = X.assign(code=[int(code) if code == "1" else code for code in CODES])
    model = fitted(KERNELS, mixed)
    expected = model.decision_function(mixed)
    assert_array_equal(model.decision_function(X), expected)
    numbers = with_codes(FEW["code"].astype(int))
    found = model.decision_function(numbers)
    assert_allclose(found, expected[CODES != "A"], rtol=1e-9)


def test_columns_that_no_kernel_compares_may_hold_anything():
    model = fitted([("size", RBF().on("size"))])
    expected = model.predict(X)
    assert_array_equal(model.predict(X.assign(code=3, note=pd.Timestamp("2020-01-01"))), expected)
    texts = fitted([("note", Spectrum(2).on("note"))])
    assert_array_equal(texts.predict(X.assign(size="none", code=0)), texts.predict(X))
    with pytest.raises(ValueError, match="column 'note' held text in training, and holds numbers"):
        texts.predict(X.assign(note=1.5))


def test_what_is_remembered():
    union = auto_kernels(X).fit(X)
    (view,) = trained_columns(union, X).items()
    assert view[0] == ""
    assert view[1].positions.tolist() == [0, 2]
    assert view[1].kinds == ["text", "text"]
    assert sorted(view[1].known_of(0)) == ["1", "2", "A"]
    assert len(view[1].known_of(1)) == 7
    numbers = X[["size"]]
    assert trained_columns(auto_kernels(numbers).fit(numbers), numbers) == {}


# -- categories that training did not have -----------------------------------------------------


@pytest.mark.parametrize("kernels", [None, KERNELS])
def test_unseen_categories_are_told_once_with_counts(kernels):
    model = fitted(kernels)
    new = X.assign(code=["x", "y", "y", *CODES[3:]])
    match = r"^column 'code': 3 of 60 rows have categories that training did not: 'x', 'y'\. They"
    with pytest.warns(UserWarning, match=match) as told:
        found = model.predict(new)
    assert len(told) == 1
    assert_array_equal(found[3:], model.predict(X)[3:])


def test_unseen_categories_of_views_and_of_several_columns():
    model = fitted(table={"a": X, "b": X[["note", "size"]]})
    new = {"a": X.assign(code=9, note="new"), "b": X[["note", "size"]]}
    match = "column 'code' of view 'a': 60 of 60 .*: '9'; column 'note' of view 'a': 60 of 60"
    with pytest.warns(UserWarning, match=match) as told:
        model.predict(new)
    assert len(told) == 1


def test_known_are_the_categories_of_all_training_rows():
    """Not only those of the rows that a model keeps, such as support vectors."""
    part = fitted(KERNELS)._predictor.source.keep(np.flatnonzero(CODES == "A"))
    assert set(part.table["code"]) == {"A"}
    assert sorted(part.trained[""].known_of(0)) == ["1", "2", "A"]

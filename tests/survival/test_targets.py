"""Reading of y: every form gives the same target, and what is refused says why."""

import datetime
from contextlib import nullcontext

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, cross_validate
from sklearn.utils import shuffle
from sksurv.datasets import load_aids, load_gbsg2, load_veterans_lung_cancer, load_whas500
from sksurv.util import Surv

from manykernels.survival import survival_array, survival_target
from manykernels.survival.targets import (
    check_informative,
    check_strata,
    check_survival,
    survival_table,
)

EVENT = np.array([True, False, True, True])
TIME = np.array([2.0, 0.0, 1.5, 7.0])
LABELS = ["p", "q", "r", "s"]


def structured(event, time, names=("event", "time"), kinds=("?", "<f8")):
    array = np.empty(len(event), dtype=list(zip(names, kinds, strict=True)))
    array[names[0]], array[names[1]] = event, time
    return array


# -- forms -----------------------------------------------------------------------------------

FORMS = {
    "structured": structured(EVENT, TIME),
    "structured, other names": structured(EVENT, TIME, ("fstat", "lenfol")),
    "structured, 0 and 1, single precision": structured(EVENT, TIME, ("e", "t"), ("u1", "f4")),
    "structured, time first": structured(TIME, EVENT, ("time", "event"), ("f8", "?")),
    "structured, a name of scikit-survival": structured(EVENT, TIME, ("cens", "time")),
    "Surv": Surv.from_arrays(EVENT, TIME),
    "pair": (EVENT, TIME),
    "pair of lists": (EVENT.tolist(), TIME.tolist()),
    "pair of 0 and 1": (EVENT.astype(int), TIME),
    "pair of Series": (pd.Series(EVENT), pl.Series(TIME)),
    "pair of columns": (EVENT[:, None], TIME[:, None]),
    "pair of objects": (EVENT.astype(object), TIME.astype(object)),
    "array": np.column_stack([EVENT, TIME]),
    "rows": list(zip(EVENT.tolist(), TIME.tolist(), strict=True)),
    "pandas": pd.DataFrame({"event": EVENT, "time": TIME}),
    "pandas, no telling names": pd.DataFrame({"b": TIME, 3: EVENT.astype(float)}),
    "pandas, names of TCGA": pd.DataFrame({"OS.time": TIME, "OS": EVENT.astype(int)}),
    "pandas, both names tell of death": pd.DataFrame({"days_to_death": TIME, "death": EVENT}),
    "pandas, nullable": pd.DataFrame(
        {"status": pd.array(EVENT, "boolean"), "months": pd.array(TIME, "Float64")}
    ),
    "pandas, objects": pd.DataFrame({"died": EVENT.astype(object), "days": TIME.astype(object)}),
    "polars": pl.DataFrame({"duration": TIME, "relapse": EVENT}),
    "polars, 0 and 1": pl.DataFrame({"os_status": EVENT.astype(int), "os_months": TIME}),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_target(form):
    event, time, index = survival_target(FORMS[form])
    assert_array_equal(event, EVENT)
    assert_array_equal(time, TIME)
    assert (event.dtype, time.dtype) == (bool, float)
    assert (index is not None) == form.startswith(("pandas", "pair of Series"))


@pytest.mark.parametrize("form", FORMS)
def test_the_normal_form(form):
    array = survival_array(FORMS[form])
    assert array.dtype == [("event", "?"), ("time", "<f8")]
    assert_array_equal(array["event"], EVENT)
    assert_array_equal(array["time"], TIME)
    assert_array_equal(survival_array(array), array)


def test_the_index_of_pandas_objects_is_returned():
    frame = pd.DataFrame({"event": EVENT, "time": TIME}, index=LABELS)
    for y in (frame, (frame["event"], frame["time"]), (frame["event"], TIME)):
        assert survival_target(y).index.to_list() == LABELS
        pd.testing.assert_frame_equal(survival_table(y), frame)
    assert_array_equal(survival_table((EVENT, TIME)), survival_array((EVENT, TIME)))


def test_a_pair_of_series_has_one_index():
    event, time = (pd.Series(values, index=LABELS) for values in (EVENT, TIME))
    for other in (time[::-1], time.set_axis(range(4)), time.reset_index(drop=True)):
        with pytest.raises(ValueError, match="event and time have different row labels"):
            survival_target((event, other))


@pytest.mark.parametrize("load", [load_aids, load_gbsg2, load_whas500, load_veterans_lung_cancer])
def test_data_sets_of_scikit_survival(load):
    y = load()[1]
    event, time, _ = survival_target(y)
    assert_array_equal(event, y[y.dtype.names[0]])
    assert_array_equal(time, y[y.dtype.names[1]])


@pytest.mark.parametrize("times", [[1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
def test_times_of_0_and_1_beside_a_boolean_event(times):
    """Also if rows were cut so that only these times are left."""
    for y in (
        structured(EVENT, times),
        (EVENT, times),
        pd.DataFrame({"a": times, "b": EVENT}),
    ):
        event, time, _ = survival_target(y)
        assert_array_equal(event, EVENT)
        assert_array_equal(time, times)


@pytest.mark.parametrize(
    ("event", "time"), [("event", "time"), ("died", "x"), ("x", "months"), ("status", "OS_days")]
)
def test_names_tell_columns_of_0_and_1_apart(event, time):
    values = {time: [1, 1, 0, 1], event: [0, 1, 1, 0]}
    for y in (
        pd.DataFrame(values),
        pl.DataFrame(values),
        pd.DataFrame(values).to_records(index=False),
    ):
        target = survival_target(y)
        assert target.event.tolist() == [False, True, True, False]
        assert target.time.tolist() == [1.0, 1.0, 0.0, 1.0]


class Counter(BaseEstimator):
    """Reads the targets that scikit-learn passes to it."""

    def fit(self, X, y):
        self.n_ = len(survival_target(y).time)
        return self

    def score(self, X, y):
        return self.n_ + len(survival_target(y).time)


@pytest.mark.parametrize("form", ["structured", "array", "pandas", "polars"])
def test_scikit_learn_can_cut_it_by_rows(form):
    X = np.arange(4.0)[:, None]
    scores = cross_validate(Counter(), X, FORMS[form], cv=KFold(2), error_score="raise")
    assert scores["test_score"].tolist() == [4, 4]
    y = shuffle(FORMS[form], random_state=0)
    assert sorted(survival_target(y).time.tolist()) == sorted(TIME.tolist())


# -- what is refused ---------------------------------------------------------------------------

BAD = {
    "one column": (TIME, "y must be a structured array .* got one entry per sample"),
    "three columns": (np.ones((4, 3)), r"got an array of shape \(4, 3\)"),
    "two rows": ([[1, 0, 1], [3.0, 4.0, 5.0]], r"passed as a tuple, \(event, time\)"),
    "ragged": ([[1, 2.0], [3]], "got rows of different lengths"),
    "nothing": (None, "got NoneType"),
    "a dict": ({"event": EVENT, "time": TIME}, "got dict"),
    "sparse": (sparse.csr_array(np.ones((2, 2))), "got csr_array"),
    "no rows": (([], []), r"Found array with 0 sample\(s\)"),
    "lengths": ((EVENT, TIME[1:]), "event has 4 entries and time has 3"),
    "a matrix in a pair": ((EVENT, np.ones((4, 2))), r"time must have one .* shape \(4, 2\)"),
    "events of 0 and 1, times too": (([0, 1], [1, 0]), "both could be the event"),
    "an array of 0 and 1": (np.array([[0, 1], [1, 1]]), r"event boolean, by .astype\(bool\)\."),
    "a frame of 0 and 1": (
        pd.DataFrame({"a": [0, 1], "b": [1, 1]}),
        'call the columns "event" and',
    ),
    "two booleans": ((EVENT, EVENT), "are both boolean"),
    "exchanged": ((TIME, EVENT), "event and time seem to be exchanged: event, .* 0, 1.5, 2, 7"),
    "exchanged columns": (np.column_stack([TIME, EVENT]), "exchanged: the first column of y"),
    "1 and 2": (([1, 2, 1], [3.0, 4.0, 5.0]), "event has the values 1, 2.* event == 2"),
    "1 and 2 in a frame": (
        pd.DataFrame({"time": [3.0, 4.0, 5.0], "status": [1, 2, 1]}),
        r'column \'status\' of y has the values 1, 2.* y\["status"\] == 2',
    ),
    "text": (
        pd.DataFrame({"vital_status": ["LIVING", "DECEASED"], "days": [3, 4]}),
        r"'vital_status' of y has text.* y\['vital_status'\] == 'LIVING'",
    ),
    "times as text": ((EVENT, ["1", "2", "3", "4"]), r"time has text, such as '1'.*astype\(float"),
    "dates": (
        pd.DataFrame({"event": EVENT, "when": pd.date_range("2020-01-01", periods=4)}),
        "'when' of y has dates",
    ),
    "dates of Python": (
        pl.DataFrame({"event": EVENT, "when": [datetime.date(2020, 1, 1)] * 4}),
        "'when' of y has dates",
    ),
    "complex": ((EVENT, TIME + 1j), "time has complex"),
    "negative": ((EVENT, TIME - 1.0), "time is -1 in row 1: .* not negative"),
    "negative, labelled": (
        pd.DataFrame({"event": EVENT, "time": TIME - 1.0}, index=LABELS),
        r"column 'time' of y is -1 in row 1 \('q'\)",
    ),
    "NaN": ((EVENT, [1.0, 2.0, np.nan, 3.0]), r"time is missing \(NaN\) in row 2"),
    "infinite": ((EVENT, [1.0, 2.0, np.inf, 3.0]), "time is inf in row 2"),
    "NaN event": (([1, np.nan, 0], [1.0, 2.0, 3.0]), r"event is missing \(NaN\) in row 1"),
    "NA": (
        pd.DataFrame(
            {"event": pd.array([True, None], "boolean"), "time": [1.0, 2.0]}, index=["p", "q"]
        ),
        r"column 'event' of y is missing in row 1 \('q'\)",
    ),
    "null": (pl.DataFrame({"event": [None, True], "time": [1.0, 2.0]}), "is missing in row 0"),
    "masked": (np.ma.array([[1, 2.0]], mask=[[False, True]]), "y has masked entries"),
    "three columns of a frame": (
        pd.DataFrame({"event": EVENT, "time": TIME, "age": TIME}),
        r"3 columns \('event', 'time', 'age'\): select .* y\[\[\"event\", \"time\"\]\]",
    ),
    "one name twice": (pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), "are called 'a'"),
    "three fields": (
        np.zeros(3, dtype=[("a", bool), ("b", float), ("c", float)]),
        "the fields 'a', 'b', 'c': it must have one dimension and two fields",
    ),
    "names against values": (
        pd.DataFrame({"event": TIME, "time": EVENT.astype(int)}),
        "contradicts their names",
    ),
}
BAD |= {
    f"a column of the opposite, {name}": (
        pd.DataFrame({name: EVENT, "time": TIME}),
        rf"{name!r} of y seems .* not observed.*~y\[{name!r}\], called \"event\"",
    )
    for name in ("censored", "is_censored", "Censoring", "alive", "cens", "Censor")
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case):
    y, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        survival_target(y)


def test_the_opposite_of_numbers():
    with pytest.raises(ValueError, match=r"Replace it by 1 - y\['censored'\]"):
        survival_target(pd.DataFrame({"censored": [0, 1], "days": [3, 4]}))
    with pytest.raises(ValueError, match="field 'censored' of y seems"):
        survival_target(structured(EVENT, TIME, ("censored", "time")))


def test_columns_given_by_name_may_both_be_0_and_1():
    event, time = check_survival([0, 1, 1], [1, 1, 0])
    assert event.tolist() == [False, True, True]
    assert time.tolist() == [1.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="exchanged"):
        check_survival(TIME, EVENT)
    with pytest.raises(ValueError, match="the time must be a number"):
        check_survival(EVENT, EVENT)


# -- is there something to learn? ----------------------------------------------------------------


def informative(event, time, weight, strata, entry):
    """Whether some risk set at an event time has more than the events then, by loops."""
    n = len(time)
    for i in range(n):
        for j in range(n):
            at_risk = strata[i] == strata[j] and entry[j] < time[i] <= time[j]
            tied = event[j] and time[j] == time[i]
            if event[i] and weight[i] > 0 and weight[j] > 0 and at_risk and not tied:
                return True
    return False


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_what_is_informative_by_loops(n):
    rng = np.random.default_rng(n)
    answers = set()
    for _ in range(150):
        time, event = rng.integers(1, 4, n).astype(float), rng.random(n) < 0.6
        weight, strata = rng.integers(0, 3, n), rng.integers(0, 2, n)
        entry = time - rng.integers(1, 4, n)
        known = informative(event, time, weight, strata, entry)
        options = {"sample_weight": weight, "strata": strata, "entry": entry}
        with nullcontext() if known else pytest.raises(ValueError, match=r"A Cox|no events"):
            check_informative(event, time, **options)
        answers.add(known)
    assert answers == ({False} if n == 1 else {True, False})


@pytest.mark.parametrize(
    ("event", "time", "options", "message"),
    [
        ([0, 0], [1, 2], {}, "no events among 2 samples: all are censored.*pass the opposite"),
        ([1, 0], [1, 2], {"sample_weight": [0, 1]}, "no events among 1 samples of positive"),
        ([1, 1], [3, 3], {}, "All events are at one time, 3, when no other sample was under"),
        ([0, 1], [1, 3], {}, "All events are at one time, 3"),
        ([1, 1], [1, 2], {"strata": ["a", "b"]}, "no other sample of its stratum was under"),
        ([1, 1], [1, 2], {"strata": np.array([0, "b"], object)}, "no other sample of its stratum"),
        ([1, 1], [1, 2], {"entry": [0, 1]}, "At every event time, no other sample was under"),
    ],
)
def test_nothing_to_learn(event, time, options, message):
    with pytest.raises(ValueError, match=message):
        check_informative(np.array(event, bool), np.array(time, float), **options)


@pytest.mark.parametrize(
    ("strata", "message"),
    [
        (["a", "b"], "strata has 2 entries for 3 samples"),
        (np.ones((3, 2)), r"strata must have one entry per sample; got the shape \(3, 2\)"),
        (["a", None, "b"], "strata is missing in row 1"),
        ([1.0, 2.0, np.nan], "strata is missing in row 2"),
    ],
)
def test_strata_that_are_refused(strata, message):
    strata = np.array(strata, dtype=object) if isinstance(strata, list) else strata
    with pytest.raises(ValueError, match=message):
        check_strata(strata, 3)


def test_something_to_learn():
    check_informative(np.array([True, True, False]), np.array([3.0, 3.0, 3.0]))
    assert survival_target(([1, 1, 0], [3.0, 3.0, 3.0])).time.tolist() == [3.0] * 3

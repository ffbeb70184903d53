"""MKCox and MKCoxCV: scikit-survival's model, likelihoods by hand, strata, forms of y, choice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import (
    as_concordance_index_ipcw_scorer,
    as_cumulative_dynamic_auc_scorer,
    as_integrated_brier_score_scorer,
    concordance_index_censored,
)
from sksurv.util import Surv

from manykernels import KernelStack, KernelUnion, MKCox, MKCoxCV, compare, load, report, save
from manykernels import view_importance as importance_of
from manykernels.datasets import make_survival_views
from manykernels.kernels import RBF, Linear
from manykernels.losses.cox import Cox
from manykernels.metrics import SCORERS, concordance_index, concordance_index_ipcw
from manykernels.survival import survival_array
from tests.estimators.registry import refused
from tests.problems import slow

N = 80
_rng = np.random.default_rng(0)
X, NEW = _rng.normal(size=(N, 4)), _rng.normal(size=(25, 4))
RISK = X[:, 0] - 0.5 * X[:, 1]
# Times with ties; a third of the samples is censored.
TIME = np.ceil(6.0 * _rng.exponential(np.exp(-RISK)))
EVENT = _rng.random(N) < 0.7
Y = survival_array((EVENT, TIME))
NEW_Y = survival_array((np.arange(25) % 3 > 0, np.ceil(6 * np.exp(-NEW[:, 0]))))
WEIGHTS = _rng.choice([0.0, 0.5, 1.0, 5.0], N)
STRATA = np.array(["a", "b", "c"])[_rng.integers(0, 3, N)]
ENTRY = TIME * _rng.uniform(-0.5, 0.8, N)
KERNELS = [("wide", RBF(0.1)), ("narrow", RBF(1.0).on([0, 1])), ("line", Linear())]
STACK = KernelUnion(KERNELS).fit(X)(X)
LINEAR = {"kernels": Linear(), "normalize": None, "tol": 1e-11}
both_ties = pytest.mark.parametrize("ties", ["breslow", "efron"])


def coefficients(model, table=X, weight=None):
    """Coefficients of the columns, of a model with one linear kernel."""
    centred = table - np.average(table, axis=0, weights=weight)
    rows = slice(None) if weight is None else weight > 0
    return model.weights_[0] * centred[rows].T @ model.dual_coef_[:, 0]


# -- one kernel ------------------------------------------------------------------------------


@both_ties
@pytest.mark.parametrize("reg", [1.0, *slow(0.01, 0.1, 5.0)])
def test_one_linear_kernel_is_the_model_of_scikit_survival(ties, reg):
    model = MKCox(reg=reg, ties=ties, **LINEAR).fit(X, Y)
    other = CoxPHSurvivalAnalysis(alpha=reg, ties=ties, n_iter=500, tol=1e-14).fit(X, Y)
    assert_allclose(coefficients(model), other.coef_, atol=1e-6)
    assert_array_equal(model.unique_times_, other.unique_times_)
    for name in ("predict_survival_function", "predict_cumulative_hazard_function"):
        ours, theirs = getattr(model, name)(NEW), getattr(other, name)(NEW)
        for one, two in zip(ours, theirs, strict=True):
            assert one.domain == two.domain
            assert_allclose(one(model.unique_times_), two(other.unique_times_), rtol=1e-5)
    index = concordance_index_censored(NEW_Y["event"], NEW_Y["time"], other.predict(NEW))[0]
    assert model.score(NEW, NEW_Y) == pytest.approx(index)
    assert other.score(NEW, NEW_Y) == pytest.approx(index)


def risk_sets(event, time, weight, entry, strata):
    """For every time with events of a stratum: its events, and the samples at risk."""
    event = event & (weight > 0)
    for stratum, moment in sorted(set(zip(strata[event], time[event], strict=True))):
        alike = (strata == stratum) & (weight > 0)
        events = np.flatnonzero(alike & event & (time == moment))
        yield events, np.flatnonzero(alike & (time >= moment) & (entry < moment))


def partial_likelihood(f, weight, entry, strata):
    """−log of Breslow's partial likelihood, by its definition."""
    total = 0.0
    for events, at_risk in risk_sets(EVENT, TIME, weight, entry, strata):
        logarithm = np.log(weight[at_risk] @ np.exp(f[at_risk]))
        total += weight[events] @ (logarithm - f[events])
    return total


NONE, NEVER = np.zeros(N, int), np.full(N, -1.0)


@pytest.mark.parametrize(
    ("weight", "entry", "strata"),
    [
        (np.ones(N), NEVER, STRATA),
        (np.ones(N), ENTRY, NONE),
        (WEIGHTS, NEVER, NONE),
        (WEIGHTS, ENTRY, STRATA),
    ],
    ids=["strata", "entry", "weights", "all"],
)
def test_the_likelihood_by_brute_force(weight, entry, strata):
    reg = 2.0
    options = {} if entry is NEVER else {"entry": entry}
    options |= {} if strata is NONE else {"strata": strata}
    model = MKCox(reg=reg, ties="breslow", **LINEAR).fit(X, Y, weight, **options)

    def objective(b):
        return partial_likelihood(X @ b, weight, entry, strata) + 0.5 * reg * b @ b

    best = minimize(objective, np.zeros(4), tol=1e-10)
    assert_allclose(coefficients(model, weight=weight), best.x, atol=2e-5)
    plain = MKCox(reg=reg, ties="breslow", **LINEAR).fit(X, Y)
    assert np.abs(coefficients(plain) - best.x).max() > 1e-2
    # Hazards by Breslow's sum over the same risk sets.
    f = model.predict(X)
    hazards = model.baseline_hazard_
    hazards = hazards if isinstance(hazards, dict) else {0: hazards}
    for stratum, hazard in hazards.items():
        steps, total = [], 0.0
        for events, at_risk in risk_sets(EVENT, TIME, weight, entry, strata):
            if strata[events[0]] == stratum:
                total += weight[events].sum() / (weight[at_risk] @ np.exp(f[at_risk]))
                steps.append((TIME[events[0]], total))
        assert_allclose(hazard.x, [time for time, _ in steps])
        assert_allclose(hazard.y, [value for _, value in steps], rtol=1e-10)


def test_strata_are_separate_likelihoods_of_one_function():
    """The kernel weights and the function minimise the sum of the likelihoods of the strata."""
    model = MKCox(KERNELS, reg=2.0, tol=1e-9).fit(X, Y, strata=STRATA)
    # Other times of one stratum, in the same order: nothing changes but its hazard.
    moved = Y.copy()
    moved["time"][STRATA == "b"] = 100.0 + Y["time"][STRATA == "b"] ** 2
    other = MKCox(KERNELS, reg=2.0, tol=1e-9).fit(X, moved, strata=STRATA)
    assert_allclose(other.predict(NEW), model.predict(NEW), atol=1e-6)
    assert_allclose(other.baseline_hazard_["a"].y, model.baseline_hazard_["a"].y, rtol=1e-5)
    assert_allclose(other.baseline_hazard_["b"].x, 100.0 + model.baseline_hazard_["b"].x ** 2)
    without = MKCox(KERNELS, reg=2.0, tol=1e-9).fit(X, moved)
    assert np.abs(without.predict(NEW) - model.predict(NEW)).max() > 0.05
    # A sample is as likely to survive as those of its stratum.
    curves = model.predict_survival_function(NEW[:3], strata=["a", "b", "b"])
    for curve, stratum, risk in zip(curves, "abb", model.predict(NEW[:3]), strict=True):
        hazard = model.baseline_hazard_[stratum]
        assert_allclose(curve.y, np.exp(-np.exp(risk) * hazard.y), rtol=1e-12)


def test_names_of_strata_do_not_matter():
    expected = MKCox(KERNELS).fit(X, Y, strata=STRATA)
    numbers = {"a": 7, "b": -1.5, "c": True}
    mixed = np.array([numbers[label] for label in STRATA], dtype=object)
    for strata in (pd.Categorical(STRATA), pd.Series(STRATA), mixed):
        model = MKCox(KERNELS).fit(X, Y, strata=strata)
        assert_array_equal(model.predict(NEW), expected.predict(NEW))
        assert len(model.baseline_hazard_) == 3
    curve = model.predict_survival_function(NEW[:1], strata=[True])[0]
    assert_allclose(curve.y, expected.predict_survival_function(NEW[:1], strata=["c"])[0].y)


def test_one_stratum_is_none():
    expected = MKCox(KERNELS).fit(X, Y)
    model = MKCox(KERNELS).fit(X, Y, strata=np.full(N, "all"))
    assert_array_equal(model.predict(NEW), expected.predict(NEW))
    assert_array_equal(model.baseline_hazard_["all"].y, expected.baseline_hazard_.y)


def test_a_weight_of_two_is_a_repeated_row_with_breslows_ties():
    counts = np.arange(N) % 3
    rows = np.repeat(np.arange(N), counts)
    options = {"ties": "breslow", "tol": 1e-10}
    weighted = MKCox(KERNELS, **options).fit(X, Y, counts, entry=ENTRY, strata=STRATA)
    repeated = MKCox(KERNELS, **options).fit(
        X[rows], Y[rows], entry=ENTRY[rows], strata=STRATA[rows]
    )
    assert_allclose(weighted.predict(NEW), repeated.predict(NEW), atol=1e-6)
    for stratum in "abc":
        hazards = (model.baseline_hazard_[stratum] for model in (weighted, repeated))
        assert_allclose(*(hazard.y for hazard in hazards), rtol=1e-5)


@pytest.mark.parametrize("p", [1.0, *slow(2.0)])
def test_solvers_agree_within_their_gaps(p):
    best = MKCox(KERNELS, p=p, tol=1e-11).fit(X, Y).certificate_
    for solver in ("newton", "analytic", "sip"):
        certificate = MKCox(KERNELS, p=p, solver=solver, tol=1e-5).fit(X, Y).certificate_
        assert certificate.converged
        assert certificate.dual <= best.primal * (1 + 1e-10)
        assert best.dual <= certificate.primal * (1 + 1e-10)


# -- forms of y ------------------------------------------------------------------------------

LABELS = [f"patient {k}" for k in range(N)]
TABLE = pd.DataFrame(X, index=LABELS, columns=list("abcd"))
FRAME = pd.DataFrame({"months": TIME, "died": EVENT}, index=LABELS)
EXPECTED = MKCox().fit(TABLE, Y)
FORMS = {
    "scikit-survival": Surv.from_arrays(EVENT, TIME, "status", "days"),
    "frame": FRAME,
    "pair": (EVENT, TIME),
    "pair of lists": (EVENT.astype(int).tolist(), TIME.tolist()),
    "pair of Series": (FRAME["died"], FRAME["months"]),
    "array": np.column_stack([EVENT, TIME]),
    "polars": pl.DataFrame({"months": TIME, "died": EVENT}),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_y(form):
    model = MKCox().fit(TABLE, FORMS[form])
    assert_array_equal(model.predict(TABLE), EXPECTED.predict(TABLE))
    assert model.score(TABLE, FORMS[form]) == EXPECTED.score(TABLE, Y)


def test_rows_are_matched_by_label():
    order = np.random.default_rng(1).permutation(N)
    shuffled = FRAME.iloc[order]
    by_label = "have the labels of X in another order"
    for y in (shuffled, (shuffled["died"], shuffled["months"])):
        with pytest.warns(UserWarning, match=f"rows of y {by_label}"):
            model = MKCox().fit(TABLE, y)
        assert_array_equal(model.predict(TABLE), EXPECTED.predict(TABLE))
        with pytest.warns(UserWarning, match=f"rows of y {by_label}"):
            assert model.score(TABLE, y) == EXPECTED.score(TABLE, Y)
    given = {
        "sample_weight": pd.Series(WEIGHTS, LABELS),
        "entry": pd.Series(ENTRY, LABELS),
        "strata": pd.Series(STRATA, LABELS),
    }
    expected = MKCox().fit(TABLE, FRAME, **given)
    moved = {name: values.iloc[order] for name, values in given.items()}
    # Also beside a y without labels, whose rows are those of X.
    for y in (FRAME, Y):
        with pytest.warns(UserWarning, match="rows of sample_weight and entry and strata have"):
            model = MKCox().fit(TABLE, y, **moved)
        assert_array_equal(model.predict(TABLE), expected.predict(TABLE))
    with refused("8 of 80 labels of X are not in y"):
        MKCox().fit(TABLE, FRAME.iloc[8:])
    with refused("event and time have different row labels"):
        MKCox().fit(TABLE, (FRAME["died"], shuffled["months"]))
    with refused("labels of strata are not those of X"):
        MKCox().fit(TABLE, FRAME, strata=given["strata"].iloc[:-1])


def test_views_in_different_orders():
    views = {"first": TABLE[["a", "b"]], "second": TABLE[["c", "d"]].iloc[::-1]}
    expected = MKCox(RBF()).fit({"first": X[:, :2], "second": X[:, 2:]}, Y, strata=STRATA)
    model = MKCox(RBF()).fit(views, FRAME, strata=pd.Series(STRATA, LABELS))
    assert_allclose(model.weights_, expected.weights_, rtol=1e-9)
    with refused("different orders, so that y needs labels"):
        MKCox(RBF()).fit(views, Y)
    with refused("different orders, so that strata needs labels"):
        MKCox(RBF()).fit(views, FRAME, strata=STRATA)


@pytest.mark.parametrize("missing", ["mean", *slow("conditional")])
def test_samples_that_lack_views(missing):
    views, y, _ = make_survival_views(n_samples=60, random_state=0)
    names = list(views)
    some = {name: pd.DataFrame(table) for name, table in views.items()}
    some[names[0]] = some[names[0]].iloc[6:]
    model = MKCox(RBF(), missing=missing, reg=5.0).fit(some, y)
    assert model.score(some, y) > 0.6
    search = MKCoxCV(RBF(), missing=missing, ps=[2], regs=[1.0, 10.0], cv=3).fit(some, y)
    assert np.isfinite(search.left_out_predictions_).all()
    with refused("lacks 6 of 60 samples"):
        MKCox(RBF()).fit(some, y)


BAD = {
    "negative": ((EVENT, np.where(TIME[3] == TIME, -1.0, TIME)), "time is -1 in row"),
    "no events": ((np.zeros(N, bool), TIME), "y has no events among 80 samples: all are censored"),
    "all at one time": ((EVENT, np.ones(N)), "All events are at one time|nothing to compare"),
    "NaN": (
        (EVENT, np.where(np.arange(N) == 5, np.nan, TIME)),
        r"time is missing \(NaN\) in row 5",
    ),
    "words": ((np.where(EVENT, "dead", "alive"), TIME), "event has text, such as"),
    "both 0 and 1": ((EVENT.astype(int), (TIME > 3).astype(int)), "both could be the event"),
    "exchanged": ((TIME, EVENT), "event and time seem to be exchanged"),
    "one number": (TIME, "y must be a structured array .* got one entry per sample"),
    "short": (Y[:-1], r"inconsistent numbers of samples: \[80, 79\]"),
    "nothing": (None, "requires y to be passed, but the target y is None"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("kind", [MKCox, MKCoxCV])
def test_bad_targets(kind, case):
    y, message = BAD[case]
    if case == "all at one time":
        y = (np.ones(N, bool), np.ones(N))
    with refused(message):
        kind(KERNELS).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"entry": TIME}, "entry is .* and time is .* in row 0: a sample must come under"),
        ({"entry": ENTRY[:-1]}, "entry has 79 entries for 80 samples"),
        ({"entry": np.where(np.arange(N) == 2, np.nan, ENTRY)}, "entry must be finite, .* row 2"),
        ({"entry": STRATA}, "entry must be numbers"),
        ({"strata": STRATA[:-1]}, "strata has 79 entries for 80 samples"),
        ({"strata": np.arange(N)}, "no other sample of its stratum was under observation"),
        ({"strata": np.where(np.arange(N) == 4, None, STRATA)}, "strata is missing in row 4"),
        ({"sample_weight": np.where(EVENT, 0.0, 1.0)}, "y has no events among"),
    ],
)
def test_bad_entries_strata_and_weights(options, message):
    with refused(message):
        MKCox(KERNELS).fit(X, Y, **options)
    with refused("MKCox.fit takes no argument 'stratum'", TypeError):
        MKCox(KERNELS).fit(X, Y, stratum=STRATA)


def test_bad_strata_of_predictions():
    plain, model = MKCox(KERNELS).fit(X, Y), MKCox(KERNELS).fit(X, Y, strata=STRATA)
    for method in ("predict_survival_function", "predict_cumulative_hazard_function"):
        with refused("the model was fitted without strata"):
            getattr(plain, method)(NEW, strata=STRATA[:25])
        with refused("The model was fitted with strata .*: pass strata=…"):
            getattr(model, method)(NEW)
        with refused("strata has 3 entries for 25 samples"):
            getattr(model, method)(NEW, strata=["a", "b", "c"])
        with refused("Stratum 'd' was not in training; there were "):
            getattr(model, method)(NEW, strata=["d"] * 25)


# -- scores ----------------------------------------------------------------------------------


def test_the_score_is_the_concordance_index():
    model, weight = MKCox(KERNELS).fit(X, Y), np.linspace(0.1, 2.0, 25)
    strata = np.arange(25) % 2
    event, time, risk = NEW_Y["event"], NEW_Y["time"], model.predict(NEW)
    assert model.score(NEW, NEW_Y) == concordance_index(event, time, risk)
    assert model.score(NEW, NEW_Y, weight) == concordance_index(
        event, time, risk, sample_weight=weight
    )
    assert model.score(NEW, NEW_Y, strata=strata) == concordance_index(
        event, time, risk, strata=strata
    )
    assert model.score(NEW, NEW_Y) == SCORERS["concordance_index"](model, NEW, NEW_Y)


def test_searches_of_scikit_learn():
    model = MKCox("precomputed")
    scores = cross_val_score(model, STACK, Y, cv=KFold(3), error_score="raise")
    for score, (train, test) in zip(scores, KFold(3).split(X), strict=True):
        fold = MKCox("precomputed").fit(STACK[np.ix_(train, train)], Y[train])
        assert score == fold.score(STACK[np.ix_(test, train)], Y[test])
    for name in ("concordance_index", "concordance_index_ipcw", "neg_integrated_brier_score"):
        pipeline = make_pipeline(StandardScaler(), MKCox(Linear(), tol=1e-6))
        search = GridSearchCV(
            pipeline,
            {"mkcox__reg": [1.0, 100.0]},
            scoring=SCORERS[name],
            cv=3,
            error_score="raise",
        ).fit(X, Y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert len(search.predict(NEW)) == 25
    risks = cross_val_predict(MKCox(KERNELS), X, Y, cv=KFold(3))
    assert concordance_index(EVENT, TIME, risks) > 0.6


def test_strata_are_cut_with_the_rows_by_a_search():
    search = GridSearchCV(MKCox(KERNELS), {"reg": [1.0, 10.0]}, cv=KFold(2), error_score="raise")
    search.fit(X, Y, strata=STRATA, entry=ENTRY)
    at = search.cv_results_["params"].index({"reg": 10.0})
    for k, (train, test) in enumerate(KFold(2).split(X)):
        fold = MKCox(KERNELS, reg=10.0)
        fold.fit(X[train], Y[train], strata=STRATA[train], entry=ENTRY[train])
        expected = fold.score(X[test], Y[test])
        assert search.cv_results_[f"split{k}_test_score"][at] == expected


def test_recipes_of_scikit_survival():
    """Their wrappers around this estimator in a search, as in their guide."""
    # The study ends at one time for all, so that no part is observed longer than another.
    Y = survival_array((EVENT & (TIME < 20.0), np.minimum(TIME, 20.0)))
    times = np.array([2.0, 5.0, 10.0])
    for wrapper in (
        as_concordance_index_ipcw_scorer,
        as_cumulative_dynamic_auc_scorer,
        as_integrated_brier_score_scorer,
    ):
        options = {} if wrapper is as_concordance_index_ipcw_scorer else {"times": times}
        options |= {} if options else {"tau": 15.0}
        search = GridSearchCV(
            wrapper(MKCox(Linear()), **options),
            {"estimator__reg": [1.0, 1000.0]},
            cv=KFold(3, shuffle=True, random_state=1),
            error_score="raise",
        ).fit(X, Y)
        assert np.isfinite(search.best_score_)
        wrapped = wrapper(CoxPHSurvivalAnalysis(alpha=2.0, ties="efron"), **options).fit(X, Y)
        ours = wrapper(MKCox(reg=2.0, **LINEAR), **options).fit(X, Y)
        assert ours.score(X, Y) == pytest.approx(wrapped.score(X, Y))


# -- the choice ------------------------------------------------------------------------------

FOLDS = list(KFold(3, shuffle=True, random_state=0).split(X))
GRID = {"ps": [1.0, 2.0], "regs": [1.0, 10.0]}


def score_by_hand(scoring, model, block, rows, options):
    """The score of a fold on its test rows, within strata and with entries if there are some."""
    cut = {name: values[rows] for name, values in options.items()}
    risk, strata = model.predict(block), cut.get("strata")
    if scoring is None:
        return model.score(block, Y[rows], strata=strata)
    if scoring == "concordance_index_ipcw":
        return concordance_index_ipcw(EVENT[rows], TIME[rows], risk, strata=strata)
    function = Cox(TIME[rows], EVENT[rows], **cut)
    return 1.0 - function.value(risk[:, None]) / function.value(np.zeros((len(risk), 1)))


@pytest.mark.parametrize("scoring", [None, *slow("partial_likelihood", "concordance_index_ipcw")])
@pytest.mark.parametrize("options", [{}, {"strata": STRATA, "entry": ENTRY}], ids=["plain", "all"])
def test_scores_are_those_of_fits_fold_by_fold(scoring, options):
    search = MKCoxCV("precomputed", cv=FOLDS, scoring=scoring, tol=1e-8, **GRID)
    model = search.fit(STACK, Y, **options)
    results = model.cv_results_
    risks = np.full((4, N), np.nan)
    for k, (train, test) in enumerate(FOLDS):
        cut = {name: values[train] for name, values in options.items()}
        for at, params in enumerate(results["params"]):
            fold = MKCox("precomputed", tol=1e-8, **params)
            fold.fit(STACK[np.ix_(train, train)], Y[train], **cut)
            block = STACK[np.ix_(test, train)]
            risks[at, test] = fold.predict(block)
            expected = score_by_hand(scoring, fold, block, test, options)
            assert results[f"split{k}_test_score"][at] == pytest.approx(expected, abs=1e-6)
    scores = np.array([results[f"split{k}_test_score"] for k in range(3)])
    for k, (_, test) in enumerate(FOLDS):
        others = np.delete(scores, k, axis=0).mean(axis=0)
        if np.sum(others == others.max()) == 1:
            found = model.left_out_predictions_[test]
            assert_allclose(found, risks[others.argmax(), test], atol=1e-4)
    if scoring is None:
        strata = {"strata": STRATA} if options else {}
        expected = concordance_index(EVENT, TIME, model.left_out_predictions_, **strata)
        assert model.left_out_score_ == expected


def test_samples_of_different_strata_are_not_compared():
    """One stratum has short times and the other long ones, and both have the same risks."""
    strata = np.arange(N) % 2
    y = survival_array((EVENT, TIME + 1000.0 * strata))
    table = np.column_stack([X, 3.0 * strata])
    splits = {"cv": FOLDS, "ps": [2], "regs": [1.0]}
    for scoring in (None, "concordance_index", "partial_likelihood"):
        search = MKCoxCV(Linear(), scoring=scoring, **splits)
        within = search.fit(table, y, strata=strata).best_score_
        same_times = search.fit(table, Y, strata=strata).best_score_
        assert within == pytest.approx(same_times, rel=1e-9)


def test_a_validation_set():
    for y_val in (NEW_Y, (NEW_Y["event"], NEW_Y["time"]), pd.DataFrame(NEW_Y)):
        model = MKCoxCV(KERNELS, cv=(NEW, y_val), scoring=None, tol=1e-8, **GRID).fit(X, Y)
        at = model.cv_results_["params"].index({"p": 2.0, "reg": 1.0})
        expected = MKCox(KERNELS, tol=1e-8).fit(X, Y).score(NEW, NEW_Y)
        assert model.cv_results_["mean_test_score"][at] == pytest.approx(expected)
    assert model.n_splits_ == 1
    with refused("cv is a validation set, whose strata are not known"):
        MKCoxCV(KERNELS, cv=(NEW, NEW_Y), **GRID).fit(X, Y, strata=STRATA)


def test_folds_have_events_in_equal_parts():
    rare = np.arange(N) % 16 == 0  # five events
    model = MKCoxCV(Linear(), ps=[2], regs=[10.0]).fit(X, (rare, TIME))
    assert np.bincount(model.test_fold_, rare).tolist() == [1.0] * 5


def test_groups_are_not_divided():
    groups = np.arange(N) // 4
    for cv in (4, GroupKFold(4)):
        model = MKCoxCV(Linear(), cv=cv, ps=[2], regs=[10.0]).fit(X, Y, groups=groups)
        folds = model.test_fold_.reshape(-1, 4)
        assert (folds == folds[:, :1]).all()


def test_splits_that_say_nothing_are_named():
    every = np.arange(N)
    late = np.argsort(TIME)[-2:]
    y = survival_array((np.where(np.isin(every, late), False, EVENT), TIME))
    search = MKCoxCV(Linear(), cv=[(np.delete(every, late), late)], scoring=None, **GRID)
    with refused(r"test part of split 0 .* cannot be scored: No two of the 2 samples .*fewer"):
        search.fit(X, y)
    with refused(r"test part of split 0 .* cannot be scored: y has no events among 2 samples"):
        search.set_params(scoring="partial_likelihood").fit(X, y)
    events = np.flatnonzero(EVENT)
    search = MKCoxCV(Linear(), cv=[(np.setdiff1d(every, events), events)], **GRID)
    with refused("Nothing can be learnt from the training part of a split: y has no events"):
        search.fit(X, Y)


def test_searches_know_no_survival_curves():
    search = MKCoxCV(Linear(), scoring="neg_integrated_brier_score", **GRID)
    with refused("Only the risks of held-out samples are known, .*MKCox in a GridSearchCV"):
        search.fit(X, Y)


@pytest.mark.slow
def test_jobs_change_nothing():
    models = [
        MKCoxCV(KERNELS, n_jobs=n_jobs, **GRID).fit(X, Y, strata=STRATA) for n_jobs in (None, 2)
    ]
    assert_array_equal(models[1].left_out_predictions_, models[0].left_out_predictions_)
    assert_array_equal(models[1].predict(NEW), models[0].predict(NEW))


# -- what looks at models --------------------------------------------------------------------


@pytest.mark.parametrize("strata", [None, STRATA, np.arange(N) % 2 == 0], ids=["none", "abc", "2"])
def test_model_files(strata, tmp_path):
    options = {} if strata is None else {"strata": strata}
    model = MKCox(KERNELS).fit(X, Y, **options)
    save(model, tmp_path / "model.skops")
    twin = load(tmp_path / "model.skops")
    assert_array_equal(twin.predict(NEW), model.predict(NEW))
    of_new = {} if strata is None else {"strata": strata[:25]}
    for method in ("predict_survival_function", "predict_cumulative_hazard_function"):
        ours, known = (getattr(each, method)(NEW, **of_new) for each in (twin, model))
        for one, two in zip(ours, known, strict=True):
            assert_array_equal(one.x, two.x)
            assert_array_equal(one.y, two.y)
            assert one.domain == two.domain


# The risk is in the first view.
VIEWS = {"signal": TABLE[["a", "b"]], "noise": TABLE[["c", "d"]]}


@pytest.mark.parametrize("y", [FRAME, *slow(Y, (FRAME["died"], FRAME["months"]))], ids=type)
def test_importance_of_views(y):
    result = importance_of(MKCox(Linear(), reg=10.0), VIEWS, y, cv=3, n_resamples=2)
    assert result.scoring == "concordance_index"
    assert 0 <= result.score_interval[0] <= result.score <= result.score_interval[1] <= 1
    fall, noise = result.fall_interval
    assert fall[0] > 0
    assert noise[0] < 0 < noise[1]
    assert result.alone[0] > 0.65 > result.alone[1]
    assert result.weight[0] > 0.5
    assert "concordance_index" in str(result)


def test_importance_is_judged_by_the_concordance_index():
    """Pooled over held-out folds, of the model of all views and without one of them."""
    arrays = {name: view.to_numpy() for name, view in VIEWS.items()}
    folds = list(KFold(3).split(X))
    model = MKCox(Linear(), reg=10.0, tol=1e-9)
    result = importance_of(model, arrays, Y, cv=folds, n_resamples=0)
    for names, expected in (
        (["signal", "noise"], result.score),
        (["noise"], result.score - result.fall[0]),
        (["signal"], result.alone[0]),
    ):
        risks = np.empty(N)
        for train, test in folds:
            model.fit({name: arrays[name][train] for name in names}, Y[train])
            risks[test] = model.predict({name: arrays[name][test] for name in names})
        assert concordance_index(EVENT, TIME, risks) == pytest.approx(expected, abs=1e-9)
    with refused("scoring='r2' is not supported"):
        importance_of(model, arrays, Y, scoring="r2")


@pytest.mark.slow
def test_importance_by_a_search():
    search = MKCoxCV(Linear(), ps=[2], regs=[1.0, 10.0, 100.0], cv=3)
    result = importance_of(search, VIEWS, FRAME, n_resamples=2)
    assert result.method.startswith("3 folds held out")
    index = concordance_index(EVENT, TIME, search.fit(VIEWS, FRAME).left_out_predictions_)
    assert result.score == pytest.approx(index)


@pytest.mark.parametrize("form", ["array", *slow("pair", "frame")])
def test_comparison_of_methods(form, tmp_path):
    y = {"array": Y, "pair": (EVENT, TIME), "frame": FRAME}[form]
    methods = {
        "kernels": MKCox(KERNELS, reg=10.0),
        "one of theirs": CoxPHSurvivalAnalysis(alpha=10.0),
        "in a pipeline": make_pipeline(StandardScaler(), MKCox(Linear(), reg=10.0)),
    }
    result = compare(methods, X, y, cv=3, path=tmp_path)
    assert result.scorings == ["concordance_index"]
    for name in methods:
        for k, (train, test) in enumerate(result.splits):
            model = methods[name].fit(X[train], Y[train])
            expected = SCORERS["concordance_index"](model, X[test], Y[test])
            assert result.cells[name, k].scores["concordance_index"] == pytest.approx(expected)
    assert {len(test) for _, test in result.splits} <= {26, 27}
    # Folds have events in equal parts.
    assert np.ptp([EVENT[test].sum() for _, test in result.splits]) <= 1
    again = compare(methods, X, y, cv=3, path=tmp_path, scoring="concordance_index")
    assert again.cells == {place: result.cells[place] for place in result.cells}
    other = compare(methods, X, y, cv=3, scoring=["concordance_index_ipcw", "partial_likelihood"])
    assert np.isfinite([row["partial_likelihood"] for row in other.rows()]).all()


def test_report_of_a_model():
    model = MKCox(KERNELS, reg=10.0).fit(TABLE, FRAME)
    new = pd.DataFrame(NEW, columns=list("abcd"))
    page = report(model, new, NEW_Y)
    judged = page.data["judged"]
    assert page.data["kind"] == "survival analysis"
    assert judged["scores"][0]["value"] == pytest.approx(model.score(new, NEW_Y))
    assert judged["scores"][0]["low"] < judged["scores"][0]["value"] < judged["scores"][0]["high"]
    assert judged["n_events"] == NEW_Y["event"].sum()
    assert "concordance index" in page.html


@pytest.mark.slow
def test_report_of_a_search():
    search = MKCoxCV(KERNELS, ps=[2], regs=[1.0, 10.0], cv=3, scoring=None).fit(TABLE, FRAME)
    held_out = report(search, TABLE, FRAME, importance=False).data["judged"]
    assert "held out in 3 folds" in held_out["how"]
    assert held_out["scores"][0]["value"] == pytest.approx(search.left_out_score_)


# -- edges -----------------------------------------------------------------------------------


def test_risks_far_apart():
    """λ far below the signal, where risks separate the samples perfectly."""
    order = np.argsort(X[:, 0])
    time = np.empty(N)
    time[order] = np.arange(N, 0, -1.0)
    model = MKCox(Linear(), reg=1e-3).fit(X, (np.ones(N, bool), time))
    assert model.certificate_.converged
    assert model.score(X, (np.ones(N, bool), time)) > 0.99
    curves = model.predict_survival_function(100 * X)
    hazards = model.predict_cumulative_hazard_function(100 * X)
    assert all(((curve.y >= 0) & (curve.y <= 1)).all() for curve in curves)
    assert all((np.diff(hazard.y[np.isfinite(hazard.y)]) >= 0).all() for hazard in hazards)


def test_kernels_that_are_constant_leave_no_risk():
    constant = KernelStack.from_arrays([np.ones((N, N)), 2 * np.ones((N, N))])
    with pytest.warns(UserWarning, match="Nothing can be learnt from kernels"):
        model = MKCox("precomputed").fit(constant, Y)
    assert_array_equal(model.predict(constant), np.zeros(N))
    assert model.score(constant, Y) == 0.5

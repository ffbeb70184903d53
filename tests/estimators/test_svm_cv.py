"""MKSVCCV and MKSVRCV: the choice, its honesty, probabilities, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score, get_scorer, log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold

from manykernels import MKSVC, MKSVCCV, MKSVR, MKSVRCV, KernelStack, rbf_grid
from manykernels.kernels import RBF, Linear
from manykernels.solvers import Newton
from tests.problems import slow

X, Y = load_iris(return_X_y=True)
STACK = rbf_grid([0.1, 1.0, 10.0]).fit(X)(X)
GRID = {"ps": [1.0, 2.0], "Cs": [0.1, 1.0, 10.0]}
# Values with noise, of which one column in three says nothing.
_rng = np.random.default_rng(0)
X_VALUES = _rng.uniform(-2, 2, (90, 3))
VALUES = np.sin(2 * X_VALUES[:, 0]) + X_VALUES[:, 1] + 0.2 * _rng.normal(size=90)
COLUMNS = [(f"x{j}", RBF(1.0).on([j])) for j in range(3)]
VALUE_STACK = KernelStack.from_arrays([kernel.fit(X_VALUES)(X_VALUES) for _, kernel in COLUMNS])
VALUE_GRID = {"ps": [1.0, 2.0], "Cs": [1.0, 10.0], "epsilons": [0.1, 0.3]}


def split_scores(model, k):
    return model.cv_results_[f"split{k}_test_score"]


# -- brute force -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        *slow(
            {"loss": "squared_hinge"},
            {"multi_class": "separate"},
            {"class_weight": "balanced", "normalize": "trace"},
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("scoring", "first"), [("accuracy", 30), pytest.param("roc_auc", 50, marks=pytest.mark.slow)]
)
def test_a_point_has_the_scores_of_machines_learnt_by_hand(options, scoring, first):
    """Of three classes, or of two."""
    rows, scorer = np.arange(first, 150, 2), get_scorer(scoring)
    stack, labels = STACK[np.ix_(rows, rows)], Y[rows]
    splits = list(StratifiedKFold(2, shuffle=True, random_state=0).split(labels, labels))
    weight = np.random.default_rng(0).integers(1, 3, len(rows)).astype(float)
    model = MKSVCCV("precomputed", cv=splits, scoring=scoring, tol=1e-7, **GRID, **options)
    model.fit(stack, labels, sample_weight=weight)
    for k, (train, test) in enumerate(splits):
        for params, score in zip(model.cv_results_["params"], split_scores(model, k), strict=True):
            alone = MKSVC("precomputed", tol=1e-7, **params, **options)
            alone.fit(stack[np.ix_(train, train)], labels[train], sample_weight=weight[train])
            block = stack[np.ix_(test, train)]
            expected = scorer(alone, block, labels[test], sample_weight=weight[test])
            assert score == pytest.approx(expected)


@pytest.mark.slow
def test_a_grid_search_on_a_stack_makes_the_same_choice():
    names = {"p": GRID["ps"], "C": GRID["Cs"]}
    for scoring in ("accuracy", "balanced_accuracy"):
        options = {"cv": StratifiedKFold(3), "scoring": scoring}
        search = GridSearchCV(MKSVC("precomputed"), names, **options).fit(STACK, Y)
        model = MKSVCCV("precomputed", **options, **GRID).fit(STACK, Y)
        for params, score in zip(
            search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
        ):
            at = model.cv_results_["params"].index(params)
            assert model.cv_results_["mean_test_score"][at] == pytest.approx(score)
        assert model.best_score_ == pytest.approx(search.best_score_)


@pytest.mark.slow
def test_regression_has_the_scores_of_a_grid_search():
    names = {"p": VALUE_GRID["ps"], "C": VALUE_GRID["Cs"], "epsilon": VALUE_GRID["epsilons"]}
    options = {"cv": KFold(3), "scoring": "neg_mean_absolute_error"}
    search = GridSearchCV(MKSVR("precomputed", tol=1e-7), names, **options)
    search.fit(VALUE_STACK, VALUES)
    model = MKSVRCV("precomputed", tol=1e-7, **options, **VALUE_GRID).fit(VALUE_STACK, VALUES)
    for params, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        at = model.cv_results_["params"].index(params)
        assert model.cv_results_["mean_test_score"][at] == pytest.approx(score, abs=1e-4)
    assert search.best_params_ == {"p": model.p_, "C": model.C_, "epsilon": model.epsilon_}


# -- the fit ---------------------------------------------------------------------------------


def test_the_final_machine_is_a_fit_with_the_choice():
    model = MKSVCCV(**GRID).fit(X, Y)
    plain = MKSVC(p=model.p_, C=model.C_).fit(X, Y)
    np.testing.assert_array_equal(model.weights_, plain.weights_)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    assert model.certificate_.converged


def test_the_final_regression_is_a_fit_with_the_choice():
    model = MKSVRCV(COLUMNS, **VALUE_GRID).fit(X_VALUES, VALUES)
    plain = MKSVR(COLUMNS, p=model.p_, C=model.C_, epsilon=model.epsilon_).fit(X_VALUES, VALUES)
    np.testing.assert_array_equal(model.predict(X_VALUES), plain.predict(X_VALUES))
    assert model.certificate_.converged
    assert model.validation_curve().shape == (2, 2, 2)


@pytest.mark.parametrize(
    "model", [MKSVCCV(), *slow(MKSVCCV(loss="squared_hinge"), MKSVRCV())], ids=str
)
def test_every_point_is_certified(model):
    targets = Y if isinstance(model, MKSVCCV) else X[:, 0]
    model.fit(X[::2, 1:], targets[::2])
    results = model.cv_results_
    assert results["rel_gap"].max() <= model.tol
    # Each point takes few steps from its neighbours.
    assert results["n_inner_solves"].mean() <= 4 * model.n_splits_
    assert model.best_score_ == results["mean_test_score"].max()


@pytest.mark.slow
def test_the_order_of_the_grid_and_of_the_rows_changes_nothing():
    """With the same samples in the folds."""
    order = np.random.default_rng(0).permutation(150)
    places, folds = np.argsort(order), list(StratifiedKFold(3).split(X, Y))
    one = MKSVCCV(tol=1e-6, cv=folds, **GRID).fit(X, Y)
    turned = {"ps": GRID["ps"][::-1], "Cs": GRID["Cs"][::-1]}
    moved = [(places[train], places[test]) for train, test in folds]
    other = MKSVCCV(tol=1e-6, cv=moved, **turned).fit(X[order], Y[order])
    np.testing.assert_allclose(
        one.validation_curve(), other.validation_curve()[::-1, ::-1], atol=1e-9
    )
    assert (one.p_, one.C_) == (other.p_, other.C_)


@pytest.mark.slow
def test_jobs_change_nothing():
    options = {"ps": [2.0], "Cs": [1.0], "epsilons": [0.1, 0.2], "cv": 2}
    one = MKSVRCV(COLUMNS, **options).fit(X_VALUES, VALUES)
    two = MKSVRCV(COLUMNS, n_jobs=2, **options).fit(X_VALUES, VALUES)
    np.testing.assert_allclose(one.validation_curve(), two.validation_curve())


def test_verbose_prints_the_grid(capsys):
    MKSVRCV(COLUMNS, ps=[1.5], Cs=[1, 10], epsilons=[0.1], verbose=True).fit(X_VALUES, VALUES)
    printed = capsys.readouterr().out
    assert printed.count("relative gap") >= 10
    assert "split 1/5  p 1.5  C 10  epsilon 0.1" in printed


def test_validation_sets():
    train, held = np.arange(0, 150, 2), np.arange(1, 150, 2)
    model = MKSVCCV(cv=(X[held], Y[held]), **GRID).fit(X[train], Y[train])
    for params, score in zip(model.cv_results_["params"], split_scores(model, 0), strict=True):
        assert MKSVC(**params).fit(X[train], Y[train]).score(X[held], Y[held]) == score
    assert np.isnan(model.cv_results_["se_test_score"]).all()
    values = MKSVRCV(COLUMNS, cv=(X_VALUES[60:], VALUES[60:]), **VALUE_GRID)
    assert values.fit(X_VALUES[:60], VALUES[:60]).n_splits_ == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MKSVCCV, MKSVRCV])
def test_one_standard_error(kind):
    targets = Y if kind is MKSVCCV else X[:, 0]
    options = {"ps": [1.0, 2.0], "Cs": [0.1, 1.0]}
    best = kind(**options).fit(X[::2, 1:], targets[::2])
    simple = kind(**options, one_standard_error=True).fit(X[::2, 1:], targets[::2])
    results = best.cv_results_
    at = int(np.argmax(results["mean_test_score"]))
    assert simple.best_score_ >= best.best_score_ - results["se_test_score"][at]
    assert simple.p_ > best.p_ or (simple.p_, simple.C_) == (best.p_, best.C_)


def test_points_that_cannot_be_solved_are_left_out():
    """A negative eigenvalue matters to a machine that is far from the margin."""
    v = np.where(np.arange(150) % 2, 1.0, -1.0) / np.sqrt(150)
    kernel = RBF(gamma=0.3).fit(X)(X) - 5.0 * np.outer(v, v)
    stack = KernelStack.from_arrays([kernel], psd="ignore")
    model = MKSVCCV("precomputed", ps=[2], Cs=[1e-3, 1e3], normalize=None)
    with pytest.warns(ConvergenceWarning, match=r"1 of 2 points .* could not be solved"):
        model.fit(stack, Y)
    assert model.C_ == 1e-3
    with pytest.raises(ValueError, match=r"No point of the grid could be solved.*not positive"):
        model.set_params(Cs=[1e3]).fit(stack, Y)


def test_a_larger_penalty_is_tried_where_the_largest_is_the_best():
    """The scales of Siegler: which side is heavier is known exactly."""
    values = np.stack(np.meshgrid(*[np.arange(1, 6)] * 4), axis=-1).reshape(-1, 4)
    sides = np.sign(values[:, 0] * values[:, 1] - values[:, 2] * values[:, 3])
    rows = np.random.default_rng(1).permutation(len(values))[:300]
    X, sides = np.eye(5)[values[rows] - 1].reshape(300, -1), sides[rows]
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    model = MKSVCCV(Linear(), ps=[2.0], cv=cv).fit(X, sides)
    penalties = model.cv_results_["param_C"]
    assert model.C_ > 10
    assert penalties.tolist() == [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
    given = MKSVCCV(Linear(), ps=[2.0], Cs=penalties, cv=cv).fit(X, sides)
    for name in ("mean_test_score", "se_test_score"):
        np.testing.assert_allclose(model.cv_results_[name], given.cv_results_[name])
    assert (model.C_, model.left_out_score_) == (given.C_, given.left_out_score_)
    assert model.cv_results_["rel_gap"].max() <= model.tol
    fixed = MKSVCCV(Linear(), ps=[2.0], Cs=[1.0, 10.0], cv=cv).fit(X, sides)
    assert fixed.C_ == 10.0


def test_no_larger_penalty_is_tried_where_it_changes_nothing():
    Z, labels = of_classes([20, 20], 0)
    model = MKSVCCV(Linear(), ps=[2.0]).fit(Z, labels)
    assert model.cv_results_["param_C"].max() == 10.0


# -- probabilities ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, *slow(3)])
def test_probabilities_are_as_good_as_calibrated_ones(n_classes):
    Z, labels = make_classification(
        900, 8, n_informative=5, n_classes=n_classes, flip_y=0.15, random_state=0
    )
    train, test = slice(200), slice(200, None)
    model = MKSVCCV(ps=[2.0], Cs=[1.0]).fit(Z[train], labels[train])
    plain = MKSVC(p=model.p_, C=model.C_)
    calibrated = CalibratedClassifierCV(plain, ensemble=False).fit(Z[train], labels[train])
    ours, theirs = (log_loss(labels[test], m.predict_proba(Z[test])) for m in (model, calibrated))
    assert ours < 1.02 * theirs


def test_probabilities_rank_as_decision_values_do():
    model = MKSVCCV(**GRID).fit(X[50:], Y[50:])
    order = np.argsort(model.decision_function(X[50:]))
    assert (np.diff(model.predict_proba(X[50:])[order, 1]) >= 0).all()
    np.testing.assert_allclose(
        np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12
    )
    assert MKSVCCV(scoring="neg_log_loss", **GRID).fit(X, Y).best_score_ > -0.2


def of_classes(counts, seed, n_columns=4000):
    """Samples that are nearly orthogonal, with class means that are short against their length."""
    means = 0.15 * np.random.default_rng(0).normal(size=(len(counts), n_columns))
    labels = np.repeat(np.arange(len(counts)), counts)
    noise = np.random.default_rng(seed).normal(size=(len(labels), n_columns))
    return means[labels] + noise, labels


@pytest.mark.parametrize("counts", [[24, 8, 8], [30, 10]])
def test_few_samples_of_many_columns(counts):
    """At new samples, outputs of machines are little more than their biases."""
    Z, labels = of_classes(counts, 1)
    new, expected = of_classes([100] * len(counts), 2)
    plain = MKSVC(Linear(), p=1, C=1.0).fit(Z, labels)
    model = MKSVCCV(Linear(), ps=[1], Cs=[1.0]).fit(Z, labels)
    assert (plain.predict(new) == 0).mean() > 0.95
    assert model.score(new, expected) > 0.9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_most_probable_class_is_predicted(n_classes):
    shares = [0.7, *[0.3 / (n_classes - 1)] * (n_classes - 1)]
    Z, labels = make_classification(
        150, 8, n_informative=5, n_classes=n_classes, weights=shares, flip_y=0.2, random_state=0
    )
    model = MKSVCCV(ps=[2.0], Cs=[0.1]).fit(Z, labels)
    plain = MKSVC(p=2.0, C=0.1).fit(Z, labels)
    offsets = model.calibration_.offsets
    np.testing.assert_array_equal(model.intercept_, plain.intercept_)
    np.testing.assert_allclose(
        model.decision_function(Z), np.squeeze(plain.decision_function(Z) + offsets)
    )
    np.testing.assert_array_equal(model.predict(Z), model.predict_proba(Z).argmax(axis=1))
    left_out = model.left_out_decisions_
    chosen = left_out.argmax(axis=1) if n_classes > 2 else left_out > 0
    assert np.mean(chosen == labels) == pytest.approx(model.left_out_score_)


def test_weighted_classes_are_not_moved():
    """Weights ask for other decisions than those of the most probable class."""
    Z, labels = of_classes([30, 10], 1)
    options = {"class_weight": "balanced", "ps": [1], "Cs": [0.1]}
    model = MKSVCCV(Linear(), **options).fit(Z, labels)
    plain = MKSVC(Linear(), class_weight="balanced", p=1, C=0.1).fit(Z, labels)
    np.testing.assert_array_equal(model.decision_function(Z), plain.decision_function(Z))
    assert model.calibration_.offsets == 0.0


def test_each_label_has_an_offset():
    Z, labels = of_classes([30, 10], 1)
    rare = np.column_stack([labels, 1 - labels, np.arange(40) % 2])
    model = MKSVCCV(Linear(), ps=[1], Cs=[1.0]).fit(Z, rare)
    offsets = np.concatenate([calibration.offsets for calibration in model.calibration_])
    assert offsets[0] > 0 > offsets[1]
    assert offsets[0] == pytest.approx(-offsets[1])
    assert offsets[2] == 0.0
    new, expected = of_classes([100, 100], 2)
    assert np.mean(model.predict(new)[:, 0] == expected) > 0.9


# -- rare classes ----------------------------------------------------------------------------


def with_rare_class(rng, n_common, n_rare):
    labels = np.repeat([0, 1], [n_common, n_rare])
    return rng.normal(size=(len(labels), 6)) + 1.3 * labels[:, None] * (np.arange(6) < 3), labels


@pytest.mark.slow
def test_many_classes_with_weights_of_their_own():
    """More steps in all than one vector of weights may take."""
    rng = np.random.default_rng(0)
    y = np.arange(72) % 24
    X = rng.standard_normal((72, 4)) + rng.standard_normal((24, 4))[y]
    grid = {"ps": [1], "Cs": [10.0], "cv": 3}
    model = MKSVCCV(rbf_grid([0.1, 1, 10]), multi_class="separate", **grid).fit(X, y)
    assert len(model.history_["objective"]) > Newton.default_max_iter + 1
    assert model.certificate_.converged


def test_rare_classes():
    """MKSVC with C = 1 misses most of them; at best 0.87 can be had."""
    rng = np.random.default_rng(0)
    train, (Z, labels) = with_rare_class(rng, 270, 30), with_rare_class(rng, 1800, 200)
    plain = MKSVC().fit(*train)
    options = {"scoring": "balanced_accuracy", "class_weight": "balanced", "ps": [2]}
    model = MKSVCCV(**options).fit(*train)
    before, after = (balanced_accuracy_score(labels, m.predict(Z)) for m in (plain, model))
    assert before < 0.7
    assert after > 0.8


# -- units of the values ---------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-6, *slow(1e5)])
def test_the_unit_of_the_values_changes_nothing(unit):
    options = {"ps": [2.0], "cv": 2, "tol": 1e-6}
    one = MKSVRCV(COLUMNS, **options).fit(X_VALUES, VALUES)
    other = MKSVRCV(COLUMNS, **options).fit(X_VALUES, unit * VALUES + 3 * unit)
    assert other.C_ / unit == pytest.approx(one.C_)
    assert other.epsilon_ / unit == pytest.approx(one.epsilon_)
    np.testing.assert_allclose(one.validation_curve(), other.validation_curve(), atol=1e-3)
    assert other.best_score_ == pytest.approx(one.best_score_, abs=1e-3)


def test_given_numbers_are_taken_as_they_are():
    model = MKSVRCV(COLUMNS, ps=[1.0], Cs=[7.0], epsilons=[0.0]).fit(X_VALUES, VALUES)
    assert model.cv_results_["params"] == [{"p": 1.0, "C": 7.0, "epsilon": 0.0}]


def test_values_that_are_all_equal():
    model = MKSVRCV(COLUMNS, scoring="neg_mean_absolute_error").fit(X_VALUES, np.full(90, 2.5))
    np.testing.assert_allclose(model.predict(X_VALUES), 2.5)


def test_real_values():
    Z, values = load_diabetes(return_X_y=True)
    model = MKSVRCV(scoring="neg_mean_squared_error", ps=[2.0]).fit(Z[:150], values[:150])
    scorer = get_scorer("r2")
    assert scorer(model, Z[150:], values[150:]) > 0.35


# -- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ps": [0.5]}, "ps must be a non-empty list of numbers, each at least 1"),
        ({"Cs": [0.0]}, "Cs must be a non-empty list of numbers, each positive"),
        ({"Cs": [np.inf]}, "Cs must be finite"),
        ({"Cs": [1, 1]}, "Cs has equal values"),
        ({"Cs": []}, "Cs must be a non-empty list"),
        ({"cv": (X, Y), "one_standard_error": True}, "needs the scores of several splits"),
        ({"cv": KFold(3)}, r"Split 0 leaves no training samples of \[0\]"),
        ({"cv": "closed-form"}, "The 'cv' parameter of MKSVCCV"),
        pytest.param({"scoring": "r2d2"}, "scoring", marks=pytest.mark.slow),
    ],
)
def test_bad_input_of_classes(options, message):
    with pytest.raises(ValueError, match=message):
        MKSVCCV(**{**GRID, **options}).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilons": [-0.1]}, "epsilons must be a non-empty list of numbers, each at least 0"),
        ({"epsilons": [np.inf]}, "epsilons must be finite"),
        ({"Cs": [-1.0]}, "Cs must be a non-empty list of numbers, each positive"),
        ({"cv": (X_VALUES, VALUES[:7])}, "90 rows and 7 values"),
    ],
)
def test_bad_input_of_values(options, message):
    with pytest.raises(ValueError, match=message):
        MKSVRCV(COLUMNS, **{**VALUE_GRID, **options}).fit(X_VALUES, VALUES)


def test_a_splitter_that_needs_groups_is_given_them():
    X, y = load_iris(return_X_y=True)
    X, y = X[::4], y[::4]
    groups = np.arange(len(y)) % 4
    with pytest.raises(ValueError, match=r"cv=GroupKFold\(...\) divides rows by groups"):
        MKSVCCV(RBF(), cv=GroupKFold(2)).fit(X, y)
    model = MKSVCCV(RBF(), ps=[2], Cs=[1.0], cv=GroupKFold(2)).fit(X, y, groups=groups)
    splits = list(GroupKFold(2).split(X, y, groups))
    same = MKSVCCV(RBF(), ps=[2], Cs=[1.0], cv=splits).fit(X, y, groups=groups)
    assert model.best_score_ == same.best_score_ > 0.8
    np.testing.assert_array_equal(model.test_fold_, same.test_fold_)

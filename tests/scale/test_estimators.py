"""Estimators on explicit features: equal to those on kernels, whatever rows come in."""

from __future__ import annotations

import pickle
import re
import warnings
from functools import partial

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.preprocessing import StandardScaler

import manykernels as mk
from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    ExactFeatures,
    MKRidge,
    MKRidgeCV,
    Nystrom,
    RandomFeatures,
    Views,
    rbf_grid,
)
from manykernels.estimators.feature_data import announce_long_fit
from manykernels.kernels import RBF, Linear, Polynomial
from manykernels.reporting.summary import summarize
from manykernels.scale import Fixed
from manykernels.solvers import Newton
from tests.problems import broken_unexpectedly, scikit_learn_checks, slow

WIDTHS = rbf_grid([0.7, 3.0], gamma="median")
FLAT = {"flat": Linear(), "curved": Polynomial(2), "some": Linear().on([0, 2])}
GRID = {"ps": [1, 2], "regs": [0.1, 10.0]}

# Weights are wanted to more digits here than rounding errors of features let certificates tell.
BELOW_ROUNDING = pytest.mark.filterwarnings("ignore:MK(FDA|Ridge) is limited by rounding")


def scaled(load):
    X, y = load(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


CLASSES = {"two": scaled(load_breast_cancer), "three": scaled(load_iris)}
X, Y = CLASSES["three"]
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
VALUES = scaled(load_diabetes)


def same(model, other, table=X, rtol=1e-8):
    """Two models with the same weights and answers."""
    size = np.abs(other.weights_).max()
    np.testing.assert_allclose(model.weights_, other.weights_, atol=rtol * size)
    method = "decision_function" if hasattr(model, "decision_function") else "predict"
    expected = getattr(other, method)(table)
    np.testing.assert_allclose(
        getattr(model, method)(table), expected, atol=rtol * np.abs(expected).max()
    )


# -- the same as on kernel matrices ---------------------------------------------------------


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("normalize", ["multiplicative", *slow("spherical", "trace", None)])
@pytest.mark.parametrize("p", [1, *slow(1.5, np.inf)])
@pytest.mark.parametrize("weighted", [False, True])
@BELOW_ROUNDING
def test_all_rows_as_landmarks_are_the_exact_discriminant(classes, normalize, p, weighted):
    X, y = CLASSES[classes]
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(y)).astype(float) if weighted else None
    n_landmarks = len(y) if weight is None else int(np.count_nonzero(weight))
    reg = 1e-3 if normalize == "trace" else 0.3
    options = {"p": p, "normalize": normalize, "reg": reg, "tol": 1e-12}
    exact = MKFDA(WIDTHS, **options).fit(X, y, weight)
    model = MKFDA(WIDTHS, **options, approximation=Nystrom(n_landmarks)).fit(X, y, weight)
    # Objectives that differ by rounding errors, EPS, have minimisers that differ by its root.
    same(model, exact, X, rtol=10.0 * np.sqrt(np.finfo(float).eps))
    assert model.certificate_.rel_gap < 1e-12
    assert model.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(
        model.left_out_log_proba_, exact.left_out_log_proba_, rtol=1e-5, atol=1e-7
    )
    np.testing.assert_allclose(model.transform(X), exact.transform(X), atol=1e-6)
    assert (model.rule_, model.kernel_names_) == (exact.rule_, exact.kernel_names_)
    np.testing.assert_array_equal(model.classes_, exact.classes_)


@pytest.mark.parametrize("classes", CLASSES)
def test_exact_features_are_the_exact_discriminant(classes):
    X, y = CLASSES[classes]
    exact = MKFDA(FLAT, p=1.5, tol=1e-11).fit(X, y)
    model = MKFDA(FLAT, p=1.5, tol=1e-11, approximation=ExactFeatures()).fit(X, y)
    same(model, exact, X)
    assert model.approximation_errors_.max() < 1e-12


@pytest.mark.parametrize("multi_target", ["shared", *slow("separate")])
@pytest.mark.parametrize("weighted", [False, *slow(True)])
@BELOW_ROUNDING
def test_ridge_regression_is_the_exact_one(multi_target, weighted):
    X, y = VALUES
    y = np.column_stack([y, 1e6 + 100 * X[:, 3] ** 2])
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    options = {"multi_target": multi_target, "tol": 1e-11, "reg": 3.0}
    exact = MKRidge(WIDTHS, **options).fit(X, y, weight)
    model = MKRidge(WIDTHS, **options, approximation=Nystrom(len(y))).fit(X, y, weight)
    for column in range(2):
        spread = y[:, column].std()
        for found, expected in (
            (model.predict(X), exact.predict(X)),
            (model.left_out_predictions_, exact.left_out_predictions_),
        ):
            np.testing.assert_allclose(
                found[:, column], expected[:, column], rtol=1e-12, atol=1e-7 * spread
            )
    np.testing.assert_allclose(model.weights_, exact.weights_, atol=1e-8)


@pytest.mark.slow
@BELOW_ROUNDING
def test_class_weights_and_priors():
    X, y = CLASSES["two"]
    for options in (
        {"class_weight": "balanced"},
        {"class_weight": {0: 3.0}, "priors": [0.2, 0.8]},
    ):
        exact = MKFDA(WIDTHS, tol=1e-11, **options).fit(X, y)
        model = MKFDA(WIDTHS, tol=1e-11, **options, approximation=Nystrom(len(y))).fit(X, y)
        same(model, exact, X)
        np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize(
    "model", [MKFDA(WIDTHS), *slow(MKSVC(WIDTHS, loss="squared_hinge"))], ids=str
)
def test_a_class_of_weight_zero_is_none(model):
    model = clone(model).set_params(approximation=Nystrom(30))
    weight = (Y != 2).astype(float)
    some = clone(model).fit(X[Y != 2], NAMES[Y != 2])
    model.fit(X, NAMES, weight)
    assert model.classes_.tolist() == ["setosa", "versicolor"]
    assert model.score(X[Y != 2], NAMES[Y != 2]) == some.score(X[Y != 2], NAMES[Y != 2]) == 1.0


def test_a_sample_of_the_rows_judges_like_all_of_them(monkeypatch):
    """With fewer rows to judge by, weights stay and probabilities hardly change."""
    X, y = CLASSES["two"]
    landmarks = Nystrom(selector=mk.scale.Fixed(X[::6]))
    model = MKFDA(rbf_grid([0.7, 3.0], gamma=0.05), approximation=landmarks, tol=1e-11)
    whole = clone(model).fit(X, y)
    assert len(whole.left_out_rows_) == len(y)
    monkeypatch.setattr("manykernels.estimators.feature_data.SAMPLE_ROWS", 300)
    some = clone(model).fit(X, y)
    assert 300 <= len(some.left_out_rows_) < len(y)
    assert len(some.left_out_log_proba_) == len(some.left_out_rows_)
    np.testing.assert_allclose(some.weights_, whole.weights_, atol=1e-9)
    difference = np.abs(some.predict_proba(X) - whole.predict_proba(X)).max()
    assert 0.0 < difference < 0.1


def test_left_out_probabilities_tell_of_new_rows():
    X, y = CLASSES["two"]
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:300], order[300:]
    model = MKFDA(WIDTHS, approximation=Nystrom(60)).fit(X[train], y[train])
    left_out = np.mean(model.left_out_log_proba_.argmax(axis=1) == y[train][model.left_out_rows_])
    assert abs(left_out - model.score(X[test], y[test])) < 0.04


# -- rows in any container ------------------------------------------------------------------


def containers(tmp_path):
    """The same rows in whatever holds rows, each with its y."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    mapped = np.memmap(tmp_path / "rows.bin", np.float64, "w+", shape=X.shape)
    mapped[...] = X
    lazy = dd.from_pandas(frame.assign(kind=NAMES), npartitions=3)
    return {
        "memmap": (mapped, NAMES),
        "frame": (frame, pd.Series(NAMES)),
        "sparse": (sparse.csr_array(X), NAMES),
        "dask array": (da.from_array(X, chunks=(23, 2)), da.from_array(NAMES, chunks=31)),
        "dask frame": (lazy, "kind"),
        "dask series": (lazy[list("abcd")], lazy["kind"]),
        "dask frame beside memory": (lazy[list("abcd")], NAMES),
        "memory beside dask series": (frame, lazy["kind"]),
    }


KINDS = [
    "memmap", "frame", "sparse", "dask array", "dask frame", "dask series",
    "dask frame beside memory", "memory beside dask series",
]  # fmt: skip


@pytest.mark.parametrize("kind", [KINDS[0], *slow(*KINDS[1:])])
def test_no_container_changes_anything(kind, tmp_path):
    options = {"p": 1.5, "approximation": Nystrom(50, block_size=40), "tol": 1e-11}
    whole = MKFDA(rbf_grid([1.0, 3.0]), **options).fit(X, NAMES)
    data, y = containers(tmp_path)[kind]
    model = MKFDA(rbf_grid([1.0, 3.0]), **options).fit(data, y)
    np.testing.assert_allclose(model.weights_, whole.weights_, atol=1e-10)
    table = pd.DataFrame(X, columns=list("abcd")) if hasattr(model, "feature_names_in_") else X
    np.testing.assert_allclose(
        model.decision_function(table), whole.decision_function(X), atol=1e-8
    )


@pytest.mark.parametrize("block_size", [1, *slow(7, 150)])
@BELOW_ROUNDING
def test_block_size_changes_nothing(block_size):
    def fitted(size):
        return MKFDA(WIDTHS, tol=1e-11, approximation=Nystrom(40, block_size=size)).fit(X, Y)

    same(fitted(block_size), fitted(64), rtol=1e-10)


def test_chunks_of_dask_change_nothing():
    models = [
        MKFDACV(WIDTHS, **GRID, cv=3, approximation=Nystrom(40)).fit(
            da.from_array(X, chunks=chunks), da.from_array(Y, chunks=chunks[0])
        )
        for chunks in ((150, 4), (20, 4), ((1, 99, 50), 2))
    ]
    whole = MKFDACV(WIDTHS, **GRID, cv=3, approximation=Nystrom(40)).fit(X, Y)
    for model in models:
        assert (model.p_, model.reg_) == (whole.p_, whole.reg_)
        same(model, whole, rtol=1e-10)


def test_predictions_of_dask_are_lazy_and_the_same():
    model = MKFDA(WIDTHS, approximation=Nystrom(40)).fit(X, NAMES)
    lazy = da.from_array(X, chunks=(40, 4))
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        found = getattr(model, method)(lazy)
        assert isinstance(found, da.Array)
        expected = getattr(model, method)(X)
        if method == "predict":
            np.testing.assert_array_equal(found.compute(), expected)
        else:
            np.testing.assert_allclose(found.compute(), expected, atol=1e-11)


@BELOW_ROUNDING
def test_views_of_tables_and_of_arrays_of_dask():
    tables = {"sepal": X[:, :2], "petal": X[:, 2:]}
    whole = MKFDA(RBF(), tol=1e-11, approximation=Nystrom(50)).fit(Views(tables), Y)
    assert whole.kernel_names_ == ["sepal", "petal"]
    lazy = {name: da.from_array(table, chunks=(37, 2)) for name, table in tables.items()}
    for data in (tables, lazy):
        model = MKFDA(RBF(), tol=1e-11, approximation=Nystrom(50)).fit(data, Y)
        np.testing.assert_allclose(model.weights_, whole.weights_, atol=1e-10)
        np.testing.assert_array_equal(model.predict(tables), whole.predict(tables))


def test_default_kernels():
    model = MKFDA(approximation=Nystrom(60)).fit(X, Y)
    assert model.score(X, Y) > 0.95
    assert model.kernel_names_ == MKFDA().fit(X, Y).kernel_names_


def test_random_features():
    model = MKFDA(WIDTHS, approximation=RandomFeatures(200)).fit(X, Y)
    assert model.score(X, Y) > 0.93
    assert 0.0 < model.approximation_errors_.max() < 0.5


# -- rows that come one after the other -----------------------------------------------------


@pytest.mark.parametrize("cv", [False, *slow(True)])
def test_partial_fit_adds_up(cv):
    """Parts of the rows added one by one are the rows of one call; and fit is a beginning."""
    order = np.random.default_rng(0).permutation(150)
    parts = np.array_split(order, 3)
    kind = MKFDACV(WIDTHS, **GRID, cv=3) if cv else MKFDA(WIDTHS, tol=1e-11)
    kind.set_params(approximation=Nystrom(30, block_size=50))
    every = np.unique(NAMES)
    whole = clone(kind).partial_fit(X[order], NAMES[order], classes=every)
    stream = clone(kind)
    for rows in parts:
        stream.partial_fit(X[rows], NAMES[rows], classes=every)
    same(stream, whole, rtol=1e-9)
    begun = clone(kind).fit(X[parts[0]], NAMES[parts[0]])
    for rows in parts[1:]:
        begun.partial_fit(X[rows], NAMES[rows])
    same(begun, stream, rtol=1e-9)
    again = pickle.loads(pickle.dumps(stream)).partial_fit(X[:30], NAMES[:30])
    assert again.score(X, NAMES) > 0.9


@pytest.mark.parametrize("kind", [MKFDA(WIDTHS), *slow(MKFDACV(WIDTHS, **GRID, cv=3))])
def test_partial_fit_of_classes_that_come_late(kind):
    """Rows in the order of their classes: what is learnt is as if only those seen were named."""
    every = np.unique(NAMES)
    approximation = Nystrom(selector=Fixed(X[::3]))
    model = clone(kind).set_params(approximation=approximation, class_weight={every[1]: 2.0})
    model.partial_fit(X[:40], NAMES[:40], classes=every)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.partial_fit(X[40:90], NAMES[40:90])
    assert model.classes_.tolist() == every[:2].tolist()
    two = clone(model).partial_fit(X[:40], NAMES[:40], classes=every[:2])
    same(model, two.partial_fit(X[40:90], NAMES[40:90]), X[:90])
    assert model.predict_proba(X).shape == (150, 2)
    model.partial_fit(X[90:], NAMES[90:], classes=every)
    assert model.classes_.tolist() == every.tolist()
    assert model.score(X, NAMES) > 0.9


def test_partial_fit_of_regressions():
    X, y = VALUES
    model = MKRidge(WIDTHS, approximation=Nystrom(50))
    for rows in np.array_split(np.arange(len(y)), 4):
        model.partial_fit(X[rows], y[rows])
    assert len(model.left_out_rows_) == len(y)
    assert model.score(X, y) > 0.4


def test_partial_fit_without_weights_is_with_weights_of_one():
    weight = np.random.default_rng(0).uniform(0.1, 10.0, 75)
    half, rest = (X[::2], NAMES[::2]), (X[1::2], NAMES[1::2])
    for first, second in (
        ((weight, None), (weight, np.ones(75))),
        ((None, weight), (np.ones(75), weight)),
    ):
        models = [
            MKFDA(WIDTHS, approximation=Nystrom(30))
            .partial_fit(*half, classes=np.unique(NAMES), sample_weight=before)
            .partial_fit(*rest, sample_weight=after)
            for before, after in (first, second)
        ]
        same(*models, rtol=1e-12)
        np.testing.assert_allclose(*(model.left_out_log_proba_ for model in models), atol=1e-10)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernels", rbf_grid([0.7, 3.0], gamma=0.5)),
        pytest.param("approximation", Nystrom(10), marks=pytest.mark.slow),
        pytest.param("normalize", "spherical", marks=pytest.mark.slow),
        pytest.param(
            "class_weight",
            {"setosa": 5.0, "versicolor": 1.0, "virginica": 1.0},
            marks=pytest.mark.slow,
        ),
        pytest.param("cv", 4, marks=pytest.mark.slow),
        pytest.param("kernels__rbf(3)__width", 1.0, marks=pytest.mark.slow),
        pytest.param("approximation__random_state", 3, marks=pytest.mark.slow),
    ],
)
def test_partial_fit_refuses_other_parameters(name, value):
    """Sums over the rows of before were made with those of before."""
    kernels = rbf_grid([0.7, 3.0], gamma="median")
    model = MKFDACV(kernels, **GRID, cv=3, approximation=Nystrom(30))
    for begin in (model.fit, partial(clone(model).partial_fit, classes=np.unique(NAMES))):
        begun = begin(X, NAMES)
        begun.set_params(**{name: value})
        message = f"{name.partition('__')[0]} was changed after rows were learnt from.*clone"
        with pytest.raises(ValueError, match=message):
            begun.partial_fit(X, NAMES)


def test_partial_fit_takes_other_parameters_that_come_after_the_sums():
    model = MKFDA(WIDTHS, approximation=Nystrom(30)).partial_fit(
        X, NAMES, classes=np.unique(NAMES)
    )
    model.set_params(p=1, reg=3.0).partial_fit(X[:50], NAMES[:50])
    fresh = MKFDA(WIDTHS, p=1, reg=3.0, approximation=Nystrom(30))
    fresh.partial_fit(X, NAMES, classes=np.unique(NAMES)).partial_fit(X[:50], NAMES[:50])
    same(model, fresh, rtol=1e-12)


def test_partial_fit_cannot_balance_classes():
    model = MKFDA(WIDTHS, class_weight="balanced", approximation=Nystrom(30)).fit(X, NAMES)
    with pytest.raises(ValueError, match='class_weight="balanced" needs the number of samples'):
        model.partial_fit(X[:50], NAMES[:50])


def test_partial_fit_refuses_and_stays_as_it_was():
    model = MKFDA(WIDTHS, approximation=Nystrom(20))
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X[:60], NAMES[:60])
    model.partial_fit(X[:100], NAMES[:100], classes=np.unique(NAMES)[:2])
    weights, n_rows = model.weights_.copy(), len(model.left_out_rows_)
    for data, y, classes, message in (
        (X[100:], NAMES[100:], None, "y has the class .*virginica"),
        (X[:, :2], NAMES, None, "X has 2 features, but MKFDA is expecting 4"),
        (X[:9], NAMES[:9], np.unique(NAMES), "not those of the calls before"),
        (np.full((3, 4), np.nan), NAMES[:3], None, "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(data, y, classes=classes)
        np.testing.assert_array_equal(model.weights_, weights)
    model.partial_fit(X[:40], NAMES[:40])
    assert len(model.left_out_rows_) == n_rows + 40
    assert not hasattr(MKFDA(WIDTHS), "partial_fit")


# -- choosing -------------------------------------------------------------------------------


def on_a_line(n_rows=240):
    """Three classes, of which the indicator rule never chooses the middle one."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n_rows)
    table = rng.normal(size=(n_rows, 3))
    table[:, 0] += 3.0 * y
    return table, y


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "regs"), [("two", [0.1, 10.0]), ("line", [1.0, 1e3, 1e6])])
def test_a_choice_on_moments_is_that_of_refits(classes, regs):
    """Scores of folds are those of models learnt without them, also where λ is large."""
    X, y = on_a_line() if classes == "line" else CLASSES[classes]
    cv = list(KFold(4, shuffle=True, random_state=0).split(X))
    kernels = rbf_grid([3.0, 9.0])
    model = MKFDACV(kernels, ps=[1, 2], regs=regs, cv=cv, approximation=Nystrom(40)).fit(X, y)
    assert model.cv_rule_ == ("discriminant" if classes == "line" else "indicator")
    landmarks = mk.scale.Fixed(model.landmarks_)
    refits = np.array(
        [
            cross_val_score(
                MKFDA(kernels, p=p, reg=reg, approximation=Nystrom(selector=landmarks)),
                X,
                y,
                cv=cv,
            ).mean()
            for p in (1, 2)
            for reg in regs
        ]
    )
    # The refits calibrate themselves, which moves a few decisions.
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], refits, atol=0.02)


@pytest.mark.parametrize("weighted", [False, *slow(True)])
def test_a_choice_with_all_rows_as_landmarks_is_the_exact_one(weighted):
    """At every point of the grid, in log losses of the rule that is learnt from left-out rows."""
    X, y = on_a_line(120)
    cv = list(KFold(3, shuffle=True, random_state=0).split(X))
    options = {"ps": [1, 2], "regs": [1e-3, 1.0, 1e3, 1e6], "tol": 1e-9, "cv": cv}
    options |= {"scoring": "neg_log_loss", "class_weight": {0: 1.5} if weighted else None}
    weight = np.random.default_rng(1).uniform(0.5, 1.5, len(y)) if weighted else None
    exact = MKFDACV(WIDTHS, **options).fit(X, y, weight)
    model = MKFDACV(WIDTHS, **options, approximation=Nystrom(len(y))).fit(X, y, weight)
    assert model.cv_rule_ == exact.cv_rule_ == "discriminant"
    np.testing.assert_allclose(model.validation_curve(), exact.validation_curve(), rtol=1e-4)


def test_a_split_with_too_few_training_rows_for_a_rule_is_refused(monkeypatch):
    monkeypatch.setattr("manykernels.estimators.feature_data.SAMPLE_ROWS", 60)
    monkeypatch.setattr("manykernels.estimators.feature_data._ROWS_OF_CLASS", 1)
    X, y = on_a_line()
    approximation = Nystrom(selector=Fixed(X[::10]))
    sample = MKFDA(WIDTHS, approximation=approximation).fit(X, y).left_out_rows_
    known = np.isin(np.arange(len(y)), sample) & (y == 1)
    cv = [(np.flatnonzero(~known), np.flatnonzero(known))]
    model = MKFDACV(WIDTHS, **GRID, cv=cv, approximation=approximation)
    with pytest.raises(ValueError, match=r"too few training samples of \[1\]: none of them"):
        model.fit(X, y)


def test_scores_on_noise_are_those_of_guessing():
    rng = np.random.default_rng(0)
    table, labels = rng.normal(size=(300, 30)), rng.integers(2, size=300)
    kernels = {f"k{j}": RBF().on([j]) for j in range(30)}
    model = MKFDACV(kernels, ps=[1], regs=[1.0, 10.0], approximation=Nystrom(20))
    assert abs(model.fit(table, labels).best_score_ - 0.5) < 0.08


@pytest.mark.slow
def test_ridge_choices():
    X, y = VALUES
    exact = MKRidgeCV(WIDTHS, ps=[1, 2], regs=[1.0, 100.0]).fit(X, y)
    model = MKRidgeCV(WIDTHS, ps=[1, 2], regs=[1.0, 100.0], approximation=Nystrom(len(y)))
    model.fit(X, y)
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], exact.cv_results_["mean_test_score"], atol=0.08
    )
    several = np.column_stack([y, X[:, 0]])
    model.set_params(multi_target="separate").fit(X, several)
    assert model.best_score_.shape == (2,)


@pytest.mark.parametrize(
    ("cv", "message"),
    [("closed-form", "does not go with approximation"), ((X, Y), "does not go with")],
)
def test_splits_that_moments_do_not_have(cv, message):
    with pytest.raises(ValueError, match=message):
        MKFDACV(WIDTHS, **GRID, cv=cv, approximation=Nystrom(20)).fit(X, Y)


def test_splitters_need_rows_in_memory():
    model = MKFDACV(WIDTHS, **GRID, cv=KFold(3), approximation=Nystrom(20))
    with pytest.raises(ValueError, match="pass a number of folds"):
        model.fit(da.from_array(X, chunks=50), da.from_array(Y, chunks=50))


# -- when to approximate --------------------------------------------------------------------


def test_auto_is_exact_for_few_rows_and_says_when_it_is_not(monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MKFDA(WIDTHS, approximation="auto").fit(X, Y)
    assert hasattr(model, "dual_coef_")
    monkeypatch.setattr("manykernels.estimators.feature_data.AUTO_ROWS", 100)
    with pytest.warns(UserWarning, match="150 rows are more than 100"):
        model = MKFDA(WIDTHS, approximation="auto").fit(X, Y)
    assert model.landmarks_.shape == (150, 4)


def test_rows_that_are_not_in_memory_need_an_approximation():
    lazy = da.from_array(X, chunks=50)
    with pytest.raises(TypeError, match=r"not in memory.*approximation=Nystrom\(\)"):
        MKFDA(WIDTHS).fit(lazy, Y)
    with pytest.raises(TypeError, match="not in memory"):
        mk.MKOneClassSVM(WIDTHS).fit(lazy)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reg": "joint"}, "the identity matrix has as many features"),
        ({"denoise": mk.Denoise(3)}, "denoise=.*does not go with approximation"),
        ({"missing": "mean"}, "missing='mean' does not go with approximation"),
        ({"kernels": "precomputed"}, "computes features of rows"),
        ({"solver": "coordinate"}, "solver='newton'"),
        ({"solver": "sdp", "p": 1}, "solver='newton'"),
        ({"approximation": "nystroem"}, "The 'approximation' parameter of MKFDA"),
        ({"approximation": Nystrom(n_landmarks=500)}, "n_landmarks=500 is more than"),
    ],
)
def test_what_does_not_go_with_features_is_refused(options, message):
    params = {"kernels": WIDTHS, "approximation": Nystrom(20), **options}
    with pytest.raises(ValueError, match=message):
        MKFDA(**params).fit(X, Y)


def test_one_class_and_no_rows():
    with pytest.raises(ValueError, match="at least 2 classes, got 1 class"):
        MKFDA(WIDTHS, approximation=Nystrom(5)).fit(X, np.zeros(150))
    with pytest.raises(ValueError, match="0 sample"):
        MKFDA(WIDTHS, approximation=Nystrom(5)).fit(X[:0], Y[:0])
    with pytest.raises(NotFittedError):
        MKFDA(WIDTHS, approximation=Nystrom(5)).predict(X)


def test_a_missing_value_is_named_with_its_block_and_row():
    table = np.tile(X[:50], (8, 1))
    table[313, 2] = np.nan
    lazy = da.from_array(table, chunks=(50, 4))
    with pytest.raises(ValueError, match=r"[Bb]lock 6.*row 313"):
        MKFDA(WIDTHS, approximation=Nystrom(20)).fit(lazy, np.arange(400) % 2)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = MKFDA(WIDTHS, approximation=Nystrom(20)).fit(X, Y)
    weights = model.weights_.copy()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((20, 4), np.nan), Y[::8][:19].repeat(2)[:20])
    np.testing.assert_array_equal(model.weights_, weights)


# -- scikit-learn ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        MKFDA(RBF(), approximation=Nystrom()),
        MKRidge(RBF(), approximation=Nystrom()),
        *slow(
            MKFDA(approximation=Nystrom()),
            MKRidge(approximation=Nystrom()),
            MKFDACV(ps=[1, 2], regs=[1.0], cv=2, approximation=Nystrom()),
            MKRidgeCV(ps=[1, 2], regs=[1.0], cv=2, approximation=Nystrom()),
            MKFDA(RBF(), approximation=RandomFeatures(20)),
        ),
    ],
    ids=str,
)
def test_scikit_learn_checks(model):
    broken, n_passed = scikit_learn_checks(model)
    assert broken_unexpectedly(broken, model) == []
    assert n_passed >= 50


@pytest.mark.slow
def test_in_a_search():
    search = GridSearchCV(
        MKFDA(WIDTHS, approximation=Nystrom(20)),
        {"approximation__n_landmarks": [5, 30], "reg": [0.1, 1.0]},
        cv=3,
    ).fit(X, Y)
    assert search.best_score_ > 0.9


def test_wine_by_every_kind_of_features():
    table, labels = scaled(load_wine)
    scores = {
        str(one): cross_val_score(MKFDA(WIDTHS, approximation=one), table, labels, cv=5).mean()
        for one in (Nystrom(50), RandomFeatures(100), None)
    }
    assert min(scores.values()) > 0.93, scores


def test_machines_of_the_plain_hinge_are_refused():
    if "approximation" in MKSVC().get_params():
        with pytest.raises(ValueError, match="squared_hinge"):
            MKSVC(WIDTHS, approximation=Nystrom(20)).fit(X, Y)


# -- missing numbers -------------------------------------------------------------------------


@pytest.mark.parametrize("made", [np.asarray, *slow(pd.DataFrame, da.asarray)])
def test_kernels_fill_in_missing_numbers(made):
    broken = X.copy()
    broken[[3, 120], 1] = np.nan
    filled = SimpleImputer().fit_transform(broken)
    options = {"approximation": Nystrom(30, block_size=40), "reg": 1.0}
    kernel = RBF(0.1).after(SimpleImputer())
    expected = MKFDA(RBF(0.1), **options).fit(filled, Y)
    model = MKFDA(kernel, **options).fit(made(broken), Y)
    answers = np.asarray(model.decision_function(made(broken)))
    np.testing.assert_allclose(answers, expected.decision_function(filled), atol=1e-8)
    with pytest.raises(ValueError, match=r"kernel 'plain'.*missing value \(NaN\) at row"):
        MKFDA({"filled": kernel, "plain": RBF(0.1)}, **options).fit(made(broken), Y)


def test_samples_that_lack_a_view_are_refused_though_kernels_fill_in_numbers():
    kernel = RBF(0.1).after(SimpleImputer())
    tables = {"p": pd.DataFrame(X[:, :2]), "q": pd.DataFrame(X[:, 2:])[:100]}
    with pytest.raises(ValueError, match="lack"):
        MKFDA(kernel, approximation=Nystrom(30)).fit(tables, pd.Series(Y))


@pytest.mark.parametrize("row", [3, *slow(4500)])
@pytest.mark.parametrize("approximation", [Nystrom(20), *slow(RandomFeatures(20))])
def test_transformers_that_leave_gaps(approximation, row):
    """They are found in the sample or in the pass, and in predictions; the error says where."""
    table = np.random.default_rng(0).normal(size=(4600, 2))
    broken = table.copy()
    broken[row, 1] = np.nan
    model = MKFDA(RBF(0.1).after(StandardScaler()), approximation=approximation)
    where = r"(Block \d, which begins at row \d+|In a sample of 4000 rows): .*missing value"
    with pytest.raises(ValueError, match=where):
        model.fit(broken, table[:, 0] > 0)
    model.fit(table, table[:, 0] > 0)
    where = rf"missing value \(NaN\) at row {row}" if row < 4096 else "From row 4096 on: .*row 404"
    with pytest.raises(ValueError, match=where):
        model.predict(broken)


# -- approximations by name, and estimates before a search ------------------------------------


@pytest.mark.parametrize(
    ("name", "approximation"), [("nystrom", Nystrom()), ("random", RandomFeatures())]
)
def test_approximations_have_names(name, approximation):
    named = MKFDA(RBF(1.0), approximation=name).fit(X, Y)
    same = MKFDA(RBF(1.0), approximation=approximation).fit(X, Y)
    np.testing.assert_array_equal(named.decision_function(X), same.decision_function(X))
    more = clone(named).partial_fit(X[:100], Y[:100], classes=np.unique(Y)).partial_fit(X, Y)
    assert more.predict(X).shape == Y.shape
    assert summarize(named, X, Y)["proof"]["approximate"] == type(approximation).__name__


def test_names_of_approximations_that_do_not_exist():
    with pytest.raises(ValueError, match="'nystroem'"):
        MKFDA(RBF(1.0), approximation="nystroem").fit(X, Y)


def test_a_long_search_is_announced(monkeypatch):
    monkeypatch.setattr("manykernels.estimators.feature_data._SECONDS_OF_FACTORS", 1e-3)
    sentence = (
        r"MKFDACV learns from 150 rows and \d kernels, whose matrices take 0.0 GiB, in about "
        r"\d+ hours or more\. approximation=\"nystrom\" learns from landmarks in a fraction of"
    )
    with pytest.warns(UserWarning, match=sentence):
        MKFDACV(WIDTHS, **GRID).fit(X, Y)
    with pytest.warns(UserWarning, match="there is MKFDACV, which with approximation"):
        mk.MKSVCCV(WIDTHS, ps=[1.0], Cs=[1.0]).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MKFDACV(WIDTHS, **GRID, approximation="nystrom").fit(X, Y)


def test_a_long_fit_is_announced(monkeypatch):
    monkeypatch.setattr("manykernels.estimators.feature_data._SECONDS_OF_FACTORS", 1e-4)
    way = r'in about \d+ minutes or more\. approximation="nystrom"'
    with pytest.warns(UserWarning, match=f"MKFDA learns from 150 rows .* {way} learns"):
        MKFDA(WIDTHS).fit(X, Y)
    with pytest.warns(UserWarning, match=f'{way} and loss="squared_hinge" learns'):
        mk.MKSVC(WIDTHS).fit(X, Y)
    with pytest.warns(UserWarning, match="there is MKRidgeCV, which with approximation"):
        mk.MKSVR(WIDTHS).fit(X, X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MKFDA(WIDTHS, approximation="nystrom").fit(X, Y)
        MKFDA(WIDTHS, p=1, solver=Newton(on_demand=True)).fit(X, Y)


@pytest.mark.parametrize(
    ("model", "other"),
    [
        (mk.MKSVCCV, 'pass it to MKFDACV, MKFDA or MKSVC(loss="squared_hinge")'),
        (mk.MKSVR, "pass it to MKRidgeCV or MKRidge"),
        (mk.MKSVRCV, "pass it to MKRidgeCV or MKRidge"),
        (mk.MKCoxCV, "Its parameters are kernels, ps, regs"),
    ],
)
def test_estimators_without_approximation_name_others(model, other):
    sentence = re.escape(f"{model.__name__} has no parameter 'approximation'. ")
    with pytest.raises(TypeError, match=sentence + ".*" + re.escape(other)):
        model(approximation="nystrom")
    with pytest.raises(ValueError, match=sentence + ".*" + re.escape(other)):
        model().set_params(approximation="nystrom")


def test_the_estimate_is_that_of_the_measured_fits(monkeypatch):
    """White wine, 7 kernels: 40 points 32 s for 2000 rows, four minutes for 4898; a fit 6 s."""
    told = []
    monkeypatch.setattr(
        "manykernels.estimators.feature_data.warn_caller", lambda text, kind: told.append(text)
    )
    announce_long_fit(mk.MKRidgeCV(), 2000, 7, 40)
    announce_long_fit(mk.MKRidge(), 4898, 7)
    assert told == []
    announce_long_fit(mk.MKRidgeCV(), 4898, 7, 40)
    minutes = int(re.search(r"about (\d+) minutes", told[0])[1])
    assert 3 <= minutes <= 5
    assert 'approximation="nystrom"' in told[0]
    # Ready-made kernels cannot be approximated.
    announce_long_fit(mk.MKRidgeCV("precomputed"), 4898, 7, 40)
    assert told[1].endswith(f"about {minutes} minutes or more. A grid of fewer points takes less.")


def test_memory_errors_name_the_approximation():
    rows = np.lib.stride_tricks.as_strided(np.zeros(4), (200_000, 4), (0, 8))
    with pytest.raises(MemoryError, match='approximation="nystrom"'):
        MKFDACV(WIDTHS, **GRID).fit(rows + np.arange(200_000)[:, None], np.arange(200_000) % 2)
    with pytest.raises(MemoryError, match='approximation="nystrom"'):
        MKFDA(WIDTHS).fit(rows + np.arange(200_000)[:, None], np.arange(200_000) % 2)

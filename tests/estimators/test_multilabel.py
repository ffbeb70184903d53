"""Several labels per sample: separate labels are separate models, shared ones minimise a sum."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict

from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    MKSVCCV,
    Denoise,
    KernelStack,
    MKLogistic,
    MKLogisticCV,
    Nystrom,
)
from manykernels.baselines import Average
from manykernels.kernels import RBF
from manykernels.kernels.transforms import Center
from manykernels.metrics import mean_average_precision
from manykernels.reporting.summary import summarize
from tests.estimators.registry import COMPARED, Noted, refused
from tests.problems import scikit_learn_checks, slow

X, Y = make_multilabel_classification(90, 5, n_classes=3, random_state=0)
X, Y, NEW, NEW_Y = X[:60], Y[:60], X[60:], Y[60:]
KERNELS = {"narrow": RBF(0.1), "wide": RBF(0.01), "first": RBF(0.1).on([0])}
SPLITS = list(KFold(2, shuffle=True, random_state=0).split(X))
GRID = {"ps": [1, 2], "regs": [0.1, 1.0], "cv": SPLITS}
MACHINES = {"ps": [1, 2], "Cs": [0.1, 1.0], "cv": SPLITS}
MODELS = {
    "MKFDA": MKFDA(KERNELS),
    "MKSVC": MKSVC(KERNELS),
    "MKLogistic": MKLogistic(KERNELS),
    "MKFDACV": MKFDACV(KERNELS, **GRID),
    "MKSVCCV": MKSVCCV(KERNELS, **MACHINES),
    "MKLogisticCV": MKLogisticCV(KERNELS, **GRID),
}


def models(*quick, among=MODELS):
    """Parametrise a test over the models; of these all but some wait for `make test-slow`."""
    return pytest.mark.parametrize(
        "model",
        [
            pytest.param(model, id=name, marks=[] if name in quick else [pytest.mark.slow])
            for name, model in among.items()
        ],
    )


def searches(*quick):
    return models(*quick, among={name: MODELS[name] for name in MODELS if "CV" in name})


every_model = models(*MODELS)
both = pytest.mark.parametrize("multi_label", ["separate", "shared"])


def made(model, **params):
    return type(model)(**{**model.get_params(deep=False), **params})


# -- separate labels -------------------------------------------------------------------------


def assert_is_each_label(model, **params):
    """Every label has the model that it has alone."""
    several = made(model, **params).fit(X, Y)
    assert several.n_labels_ == 3
    np.testing.assert_array_equal(several.classes_, [0, 1, 2])
    scores = several.decision_function(NEW)
    np.testing.assert_array_equal(several.predict(NEW), (scores > 0).astype(int))
    certificates = []
    for k in range(3):
        alone = made(model, **params).fit(X, Y[:, k])
        certificates.append(alone.certificate_)
        np.testing.assert_allclose(several.weights_[k], alone.weights_, rtol=1e-8, atol=1e-12)
        size = np.abs(scores[:, k]).max()
        np.testing.assert_allclose(scores[:, k], alone.decision_function(NEW), atol=1e-8 * size)
        if hasattr(alone, "predict_proba"):
            for method in ("predict_proba", "predict_log_proba"):
                found, expected = (getattr(each, method)(NEW) for each in (several, alone))
                np.testing.assert_allclose(found[:, k], expected[:, 1], rtol=1e-7)
        if hasattr(alone, "transform"):
            # Where samples have weights of their own in every label, up to a constant.
            found = several.transform(NEW)[:, k] - several.means_[:, [k]]
            expected = alone.transform(NEW)[:, 0] - alone.means_
            np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())
        for name in ("p_", "reg_", "C_", "best_score_", "left_out_score_"):
            if hasattr(alone, name) and np.size(getattr(several, name)) > 1:
                assert getattr(several, name)[k] == pytest.approx(getattr(alone, name), rel=1e-9)
        for name in ("left_out_log_proba_", "left_out_decisions_"):
            if hasattr(alone, name):
                expected = getattr(alone, name)
                expected = expected if expected.ndim == 1 else expected[:, 1]
                np.testing.assert_allclose(getattr(several, name)[:, k], expected, rtol=1e-7)
    return several, certificates


@every_model
def test_a_separate_label_is_a_model_of_its_own(model):
    several, certificates = assert_is_each_label(model)
    assert several.certificate_.converged
    if not isinstance(model, MKFDA | MKFDACV):  # whose targets are in other units
        expected = sum(certificate.primal for certificate in certificates)
        assert several.certificate_.primal == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        MKFDA(KERNELS, reg="joint", p=1.5, normalize="trace"),
        MKFDA(KERNELS, priors=[0.3, 0.7]),
        MKSVC(KERNELS, C="joint", loss="squared_hinge"),
        *slow(
            MKSVC(KERNELS, class_weight="balanced"),
            MKSVCCV(KERNELS, **{**MACHINES, "class_weight": {0: 1.0, 1: 3.0}}),
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_with_other_parameters(model):
    assert_is_each_label(model)


@pytest.mark.parametrize(
    "model",
    [MKFDA(KERNELS), MKFDACV(KERNELS, **GRID), MKLogistic(KERNELS)],
    ids=lambda model: type(model).__name__,
)
def test_class_weights_act_on_every_label(model):
    """Kernels that are not normalised are the same, however a label weights the samples."""
    assert_is_each_label(model, class_weight="balanced", normalize=None)


# -- shared labels ---------------------------------------------------------------------------


@every_model
def test_weights_of_the_plain_sum_are_shared_in_any_case(model):
    params = {"ps": [np.inf], "scoring": "neg_log_loss"} if "CV" in str(model) else {"p": np.inf}
    params["tol"] = 1e-9
    params |= {"regs": [0.1]} if hasattr(model, "regs") else {}
    params |= {"Cs": [1.0]} if hasattr(model, "Cs") else {}
    shared, separate = (
        made(model, multi_label=kind, **params).fit(X, Y) for kind in ("shared", "separate")
    )
    assert shared.weights_.shape == (3,)
    for method in ("predict", "decision_function", "predict_proba", "transform"):
        if hasattr(shared, method):
            found, expected = (getattr(each, method)(NEW) for each in (shared, separate))
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    if hasattr(shared, "best_score_"):
        assert shared.best_score_ == pytest.approx(separate.best_score_.mean(), rel=1e-6)
        assert shared.left_out_score_ == pytest.approx(separate.left_out_score_.mean(), rel=1e-5)


def conic_optimum(kernels, p, cost):
    """Minimum of ``½(Σ_j ‖W_j‖^r)^{2/r} + cost(f)``, W_j having a column per label."""
    m = kernels.shape[1]
    f, norms = np.ones((m, 1)) @ cp.Variable((1, 3)), []
    for K in kernels:
        values, vectors = np.linalg.eigh(K)
        kept = values > 1e-12 * values[-1]
        W = cp.Variable((kept.sum(), 3))
        f = f + (vectors[:, kept] * np.sqrt(values[kept])) @ W
        norms.append(cp.norm(W, "fro"))
    r = 2.0 if np.isinf(p) else 2 * p / (p + 1)
    problem = cp.Problem(cp.Minimize(cp.square(cp.pnorm(cp.hstack(norms), r)) / 2 + cost(f)))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return problem.value


LABELS = Y[:30]
SIGNS = 2 * LABELS - 1
UNITS = (LABELS - LABELS.mean(axis=0)) / LABELS.std(axis=0)
COSTS = {
    # ½ of the sum of squares and of the norm, as F is the whole of them.
    "discriminants": (MKFDA(reg=0.5), lambda f: cp.sum_squares(UNITS - f) / (2 * 0.5), 2 * 0.5),
    "machines": (MKSVC(C=0.3), lambda f: 0.3 * cp.sum(cp.pos(1 - cp.multiply(SIGNS, f))), 1.0),
    "regressions": (
        MKLogistic(reg=2.0),
        lambda f: cp.sum(cp.logistic(-cp.multiply(SIGNS, f))) / 2.0,
        2.0,
    ),
}


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("kind", COSTS)
@pytest.mark.parametrize("p", [1.0, *slow(4 / 3), 2.0])
def test_shared_weights_minimise_the_sum_over_labels(kind, p):
    """With the one certificate, against a conic solver."""
    model, cost, unit = COSTS[kind]
    squares = ((X[:30, None] - X[:30]) ** 2).sum(axis=2)
    stack = KernelStack.from_arrays([np.exp(-gamma * squares) for gamma in (0.002, 0.02, 0.2)])
    stack = Center().fit_transform(stack)
    params = {"kernels": "precomputed", "p": p, "normalize": None, "tol": 1e-7}
    shared = made(model, multi_label="shared", **params).fit(stack, LABELS)
    assert shared.certificate_.converged
    value = unit * conic_optimum(np.asarray(stack.data), p, cost)
    assert shared.certificate_.primal == pytest.approx(value, rel=1e-6)
    separate = made(model, **params).fit(stack, LABELS)
    assert separate.certificate_.primal <= shared.certificate_.primal * (1 + 1e-7)


@pytest.mark.parametrize(
    "model", [MKSVC(KERNELS), MKLogistic(KERNELS)], ids=lambda model: type(model).__name__
)
def test_class_weights_of_shared_labels(model):
    """Weights of the plain sum are the same for all labels."""
    params = {"class_weight": "balanced", "p": np.inf, "normalize": None}
    shared = made(model, multi_label="shared", **params).fit(X, Y)
    separate = made(model, **params).fit(X, Y)
    np.testing.assert_allclose(
        shared.decision_function(NEW), separate.decision_function(NEW), atol=1e-4
    )


# -- how y is passed -------------------------------------------------------------------------


@models("MKSVC")
def test_indicators_of_any_kind(model):
    model = made(model, kernels=RBF(0.1))
    expected = made(model).fit(X, Y).decision_function(NEW)
    for labels in (
        sparse.csr_array(Y),
        sparse.csc_matrix(Y),
        Y.tolist(),
        Y.astype(bool),
        Y.astype(float),
        pd.DataFrame(Y, columns=["a", "b", "c"]),
        pd.DataFrame({"a": Y[:, 0], "b": Y[:, 1] == 1, "c": Y[:, 2].astype(float)}),
    ):
        found = made(model).fit(X, labels)
        np.testing.assert_array_equal(found.decision_function(NEW), expected)
        np.testing.assert_array_equal(found.classes_, [0, 1, 2])
    assert found.score(X, sparse.csr_array(Y)) == found.score(X, Y)


@both
def test_rows_of_a_data_frame_are_matched_by_label(multi_label):
    names = [f"sample{i}" for i in range(60)]
    table, labels = pd.DataFrame(X, names), pd.DataFrame(Y, names, ["a", "b", "c"])
    order = np.random.default_rng(0).permutation(60)
    model = MKSVC(multi_label=multi_label)
    expected = made(model).fit(table, labels).decision_function(NEW_TABLE)
    with pytest.warns(UserWarning, match="have the labels of X in another order"):
        found = made(model).fit(table, labels.iloc[order])
    np.testing.assert_array_equal(found.decision_function(NEW_TABLE), expected)


NEW_TABLE = pd.DataFrame(NEW)


def test_a_validation_set_of_any_kind():
    expected = MKFDACV(KERNELS, **{**GRID, "cv": (NEW, NEW_Y)}).fit(X, Y)
    for k in range(3):
        alone = MKFDACV(KERNELS, **{**GRID, "cv": (NEW, NEW_Y[:, k])}).fit(X, Y[:, k])
        assert (expected.p_[k], expected.reg_[k]) == (alone.p_, alone.reg_)
        assert expected.best_score_[k] == pytest.approx(alone.best_score_)
    given = {**GRID, "cv": (NEW, sparse.csr_array(NEW_Y))}
    found = MKFDACV(KERNELS, **given).fit(X, sparse.csr_array(Y))
    np.testing.assert_array_equal(found.p_, expected.p_)
    with refused(r"validation set have shape \(30, 2\), those of training are 3 per sample"):
        made(found, cv=(NEW, NEW_Y[:, :2])).fit(X, Y)
    with refused(r"validation set have shape \(30,\), those of training are 3 per sample"):
        made(found, cv=(NEW, NEW_Y[:, 0])).fit(X, Y)


# -- bad input -------------------------------------------------------------------------------


@every_model
@both
def test_a_label_that_never_changes_is_named(model, multi_label):
    model, labels = made(model, multi_label=multi_label), Y.copy()
    labels[:, 1] = 1
    name = type(model).__name__
    with refused(f"^Label 1 is 1 in every training sample: {name} needs samples with it and wi"):
        model.fit(X, labels)
    with refused(r"^Label 1 \('b'\) is 1 in every training sample"):
        model.fit(X, pd.DataFrame(labels, columns=["a", "b", "c"]))
    with refused("^Label 2 is 0 in every training sample"):
        model.fit(X, Y, sample_weight=1.0 - Y[:, 2])
    assert not hasattr(model, "n_labels_")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (Y + 1, r"must be 0 or 1, but some are 2: .*\(y == 2\).astype\(int\)"),
        (2 * Y - 1, r"must be 0 or 1, but some are -1: .*\(y == 1\).astype\(int\)"),
        (np.where(np.eye(60, 3), np.nan, Y), "it is nan at row 0, column 0"),
        (np.ma.masked_array(Y, np.eye(60, 3)), "y has a masked entry at 0, 0"),
        (Y * np.arange(3), r"y should be a 1d array, got an array of shape \(60, 3\)"),
        (Y[:50], "inconsistent numbers of samples"),
    ],
)
def test_labels_that_are_no_indicators(labels, message):
    for model in MODELS.values():
        with refused(message):
            made(model).fit(X, labels)


def test_weights_are_checked_before_kernels_are_computed():
    weights = np.ones(len(X))
    weights[3] = np.nan
    with pytest.raises(ValueError, match=r"^Input sample_weight contains NaN"):
        MKFDACV().fit(X, Y, weights)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MKFDA(multi_label="shared", class_weight="balanced"), 'not go with multi_label="shared"'),
        (
            MKSVC(multi_label="shared", class_weight="balanced", C="joint", loss="squared_hinge"),
            'class_weight does not go with C="joint" and multi_label="shared"',
        ),
        (MKFDA(approximation=Nystrom(9)), "y has 3 columns, and several labels per sample do not"),
        (MKFDACV(approximation=Nystrom(9)), "several labels per sample do not go with approxim"),
        (
            MKSVC(approximation=Nystrom(9), loss="squared_hinge"),
            "several labels per sample do not go with approximation=Nystrom",
        ),
        (MKFDA(priors=[0.2, 0.2]), "priors must be 2 probabilities that sum to 1"),
    ],
)
def test_what_does_not_go_with_several_labels(model, message):
    with refused(message):
        model.fit(X, Y)


@pytest.mark.filterwarnings("ignore:Only one class is present in y_true")
def test_a_split_without_a_label_is_reported():
    rows = np.argsort(Y[:, 1], kind="stable")
    without = [(rows[:20], rows[20:]), (rows[20:], rows[:20])]
    for model in (MKFDACV(KERNELS), MKSVCCV(KERNELS), MKLogisticCV(KERNELS)):
        with refused(r"Split 0 leaves no training samples of \[1\] in label 1"):
            made(model, cv=without).fit(X, Y)
    unscored = [(rows[20:], rows[:20])]
    with refused("^Label 1: roc_auc_score is not defined for the test part of split 0"):
        MKFDACV(KERNELS, cv=unscored, scoring="roc_auc").fit(X, Y)


# -- sample weights, groups, kernels, views --------------------------------------------------


@models("MKFDA", "MKSVC", "MKLogistic")
@both
def test_weights_count_samples(model, multi_label):
    """A sample of weight two counts as two, one of weight zero as none."""
    counts = np.arange(60) % 3
    rows = np.repeat(np.arange(60), counts)
    params = {"multi_label": multi_label, "normalize": None, "kernels": RBF(0.1)}
    if "CV" in str(model):
        params["cv"] = (NEW, NEW_Y)
    weighted = made(model, **params).fit(X, Y, counts)
    repeated = made(model, **params).fit(X[rows], Y[rows])
    expected = repeated.decision_function(NEW)
    tolerance = 1e-4 * np.abs(expected).max()
    np.testing.assert_allclose(weighted.decision_function(NEW), expected, atol=tolerance)


@searches("MKFDACV")
@both
def test_groups_are_kept_together(model, multi_label):
    groups = np.arange(60) // 3
    model = made(model, cv=4, multi_label=multi_label).fit(X, Y, groups=groups)
    folds = model.test_fold_.reshape(-1, 3)
    assert (folds == folds[:, :1]).all()
    np.testing.assert_array_equal(model.groups_, groups)
    with_label = np.where(Y[:, 1] == 1, 0, groups + 1)
    with refused("^Label 1: Class 1 has rows of one group only, 0"):
        model.fit(X, Y, groups=with_label)


def test_groups_of_a_discriminant():
    groups = np.arange(60) // 3
    several = MKFDA(KERNELS).fit(X, Y, groups=groups)
    alone = MKFDA(KERNELS).fit(X, Y[:, 2], groups=groups)
    np.testing.assert_allclose(
        several.left_out_log_proba_[:, 2], alone.left_out_log_proba_[:, 1], rtol=1e-8
    )


def test_folds_have_every_label():
    """A label of five samples has one of them in each of five folds."""
    labels = np.column_stack([np.arange(60) % 2, np.arange(60) < 5, np.arange(60) % 3 == 0])
    model = MKFDACV(KERNELS, ps=[2], regs=[1.0]).fit(X, labels.astype(int))
    assert sorted(model.test_fold_[:5]) == [0, 1, 2, 3, 4]


@models("MKLogistic", "MKFDACV", "MKSVCCV")
@both
def test_kernels_are_computed_once(model, multi_label):
    model = made(model, kernels={"one": Noted(0.1), "two": Noted(1.0)}, multi_label=multi_label)
    COMPARED.clear()
    model.fit(X, Y)
    assert COMPARED == [(0.1, 60, 60), (1.0, 60, 60)]
    COMPARED.clear()
    model.decision_function(NEW)
    assert len(COMPARED) == 2


@models("MKFDA", "MKSVC")
@both
def test_views_of_which_some_are_lacking(model, multi_label):
    """Of table, stack and views the models are the same."""
    model = made(model, multi_label=multi_label, kernels=RBF(0.1), missing="mean")
    views = {"left": X[:, :2].copy(), "right": X[:, 2:]}
    views["left"][:4] = np.nan
    found = made(model).fit(views, Y)
    assert found.kernel_names_ == ["left", "right"]
    new = {"left": NEW[:, :2], "right": NEW[:, 2:]}
    table = np.hstack([views["left"], views["right"]])
    kernels = {"left": RBF(0.1).on([0, 1]), "right": RBF(0.1).on([2, 3, 4])}
    expected = made(model, kernels=kernels).fit(table, Y).decision_function(NEW)
    np.testing.assert_allclose(found.decision_function(new), expected, rtol=1e-9)


@models("MKSVC", "MKFDACV")
@both
def test_precomputed_kernels(model, multi_label):
    union = MKFDA(KERNELS).fit(X, Y).union_
    model = made(model, multi_label=multi_label)
    expected = made(model).fit(X, Y)
    found = made(model, kernels="precomputed").fit(union(X), Y)
    size = np.abs(expected.decision_function(NEW)).max()
    np.testing.assert_allclose(
        found.decision_function(union(NEW, X)), expected.decision_function(NEW), atol=1e-9 * size
    )


def test_denoising_by_cross_validation():
    model = MKFDA(KERNELS, denoise=Denoise("cv")).fit(X, Y)
    assert np.isfinite(model.denoise_.cv_errors_).all()
    # Copies of a label say the same as the label alone, if folds are the same.
    copies = MKFDA(KERNELS, denoise=Denoise("cv")).fit(X, Y[:, [2, 2]])
    assert np.isfinite(copies.decision_function(NEW)).all()
    np.testing.assert_array_equal(*copies.predict(NEW).T)


# -- the rest of the house -------------------------------------------------------------------


def test_the_protocol_of_voc():
    """Every label has the norm of the best average precision (Yan et al. 2010, 2012).

    The first label is that of one of eight kernels, the second that of all of them.
    """
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 8))
    scores = np.column_stack([3.0 * Z[:, 0], Z.sum(axis=1)]) + rng.normal(size=(400, 2))
    labels = (scores > np.quantile(scores, 0.7, axis=0)).astype(int)
    kernels = {f"column {j}": RBF(0.5).on([j]) for j in range(8)}
    train, valid, test = np.split(np.arange(400), [120, 220])
    options = {"ps": [1, 2, np.inf], "regs": [0.1, 1.0, 10.0], "scoring": "average_precision"}
    model = MKFDACV(kernels, cv=(Z[valid], labels[valid]), **options)
    model.fit(Z[train], labels[train])
    assert model.p_[0] == 1.0
    assert model.p_[1] > 1.0
    curves = model.validation_curve()
    np.testing.assert_array_equal(model.best_score_, curves.max(axis=(1, 2)))
    for k in range(2):
        alone = MKFDA(kernels, p=model.p_[k], reg=model.reg_[k], tol=1e-5)
        alone.fit(Z[train], labels[train, k])
        precision = average_precision_score(labels[valid, k], alone.decision_function(Z[valid]))
        assert model.best_score_[k] == pytest.approx(precision, abs=1e-3)
    found = mean_average_precision(labels[test], model.decision_function(Z[test]))
    fixed = [
        mean_average_precision(
            labels[test],
            made(model, ps=[p]).fit(Z[train], labels[train]).decision_function(Z[test]),
        )
        for p in (1, np.inf)
    ]
    assert found > max(fixed)
    shared = made(model, multi_label="shared").fit(Z[train], labels[train])
    assert shared.best_score_ == pytest.approx(shared.validation_curve().max())
    assert shared.best_score_ < model.best_score_.mean()


@searches("MKSVCCV")
@pytest.mark.parametrize("scoring", ["average_precision", *slow("roc_auc", "f1", None)])
@both
def test_scores_are_those_of_the_labels(model, scoring, multi_label):
    model = made(model, scoring=scoring, multi_label=multi_label).fit(X, Y)
    curve = model.validation_curve()
    assert curve.shape == ((3, 2, 2) if multi_label == "separate" else (2, 2))
    assert np.all(model.best_score_ == np.max(curve.reshape(-1, 4), axis=1).squeeze())
    assert np.shape(model.left_out_score_) == np.shape(model.best_score_)


def test_unfitted_models_have_no_curve():
    for model in MODELS.values():
        if hasattr(model, "validation_curve"):
            with pytest.raises(NotFittedError):
                made(model).validation_curve()


def test_log_probabilities_are_finite_where_probabilities_underflow():
    for model in (MKFDACV(KERNELS, **GRID), MKSVCCV(KERNELS, **MACHINES)):
        model.fit(X, Y)
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))
        model.intercept_ = model.intercept_ - 1e4
        assert (model.predict_proba(X) == 0.0).all()
        assert np.isfinite(model.predict_log_proba(X)).all()


@models()
def test_scikit_learn_checks(model):
    """Those of several labels are among them."""
    assert model.__sklearn_tags__().classifier_tags.multi_label
    params = {"kernels": None, **({"cv": 2} if hasattr(model, "cv") else {})}
    broken, n_passed = scikit_learn_checks(made(model, **params))
    assert not [line for line in broken if "sample_weight_equivalence" not in line]
    assert n_passed > 30


def test_no_several_labels_with_an_approximation():
    for model in (MKFDA(), MKSVC()):
        tags = made(model, approximation=Nystrom(9)).__sklearn_tags__()
        assert not tags.classifier_tags.multi_label


def test_searches_and_machines_of_one_kernel():
    search = GridSearchCV(MKSVC(KERNELS), {"multi_label": ["separate", "shared"]}, cv=2)
    assert search.fit(X, Y).predict(NEW).shape == (30, 3)
    proba = cross_val_predict(MKLogistic(KERNELS), X, Y, cv=2, method="predict_proba")
    assert proba.shape == (60, 3)
    mean = Average(KERNELS, estimator=MKSVC(), normalize=None).fit(X, Y)
    assert mean.predict(NEW).shape == (30, 3)


@models("MKFDA", "MKSVCCV")
@both
def test_a_report(model, multi_label):
    params = {"scoring": None} if "CV" in str(model) else {}
    model = made(model, multi_label=multi_label, **params).fit(X, Y)
    data = summarize(model, NEW, NEW_Y)
    accuracies = [row["value"] for row in data["judged"]["labels"]]
    np.testing.assert_allclose(accuracies, np.mean(model.predict(NEW) == NEW_Y, axis=0))
    assert len(data["learnt"]["groups"]) == (3 if multi_label == "separate" else 1)
    judged = summarize(model, X, Y).get("judged")
    if not hasattr(model, "left_out_log_proba_") and not hasattr(model, "left_out_decisions_"):
        assert judged is None
    elif hasattr(model, "cv"):
        assert judged["scores"][0]["value"] == pytest.approx(np.mean(model.left_out_score_))


class Recorder:
    """A callback that notes how often it is set up, and the depth of the tasks it is told of."""

    def __init__(self):
        self.calls, self.depths = [], []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, **given):
        depth = 0
        while context.parent is not None:
            context, depth = context.parent, depth + 1
        self.depths.append(depth)

    def on_fit_task_end(self, estimator, context, **given):
        return False


@searches("MKFDACV")
def test_callbacks_are_set_up_once_for_all_labels(model):
    recorder = Recorder()
    made(model).set_callbacks(recorder).fit(X, Y)
    assert recorder.calls == ["setup", "teardown"]
    assert recorder.depths.count(0) == 1
    assert max(recorder.depths) == 2

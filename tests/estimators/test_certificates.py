"""Certificates of fitted models: what is told is true of the model that is returned."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from manykernels import MKFDA, MKSVC, MKSVR, ConvexLocalizedSVR, KernelStack, MKRidge, Nystrom
from manykernels.gating import KernelRegions
from manykernels.kernels import RBF, Linear, rbf_grid
from tests.losses.test_certificate import indefinite_pair
from tests.problems import slow

PAIR = [("lin", Linear()), ("one", Linear().on([0]))]


def regression(m=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 2))
    return X, X[:, 0] + 0.1 * rng.standard_normal(m)


def labelled(m=80, seed=0, noise=0.8):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    return X, (X[:, 0] + noise * rng.standard_normal(m) > 0).astype(int)


# -- rounding --------------------------------------------------------------------------------


@pytest.mark.parametrize(("shift", "C"), [(1e5, 1.0), (1e5, 1e5), (1e4, 1e3)])
def test_what_rounding_hides_is_told(shift, C):
    X, y = regression()
    with pytest.warns(ConvergenceWarning, match=r"MKSVR is limited by rounding.*lower C"):
        model = MKSVR(PAIR, p=1, C=C).fit(X + shift, y)
    assert not model.certificate_.converged
    assert model.certificate_.status == "limited by rounding"


@pytest.mark.parametrize("reg", [1e-3, 1e-1])
def test_kernels_that_are_nearly_constant(reg):
    """Wide Gaussians are 1 less something tiny: centring leaves much of their rounding."""
    X, y = labelled()
    with pytest.warns(ConvergenceWarning, match=r"MKFDA is limited by rounding.*Raise reg"):
        model = MKFDA(rbf_grid([1e5, 2e5, 3e5]), p=np.inf, reg=reg).fit(X, y)
    assert model.certificate_.rel_rounding > model.tol


def test_narrow_ones_of_the_same_data_are_certified():
    X, y = labelled()
    assert MKFDA(rbf_grid([1, 2, 3]), p=np.inf, reg=1e-4).fit(X, y).certificate_.converged


# -- centred kernels -------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, *slow(True)])
@pytest.mark.parametrize("normalize", ["multiplicative", None])
def test_an_offset_of_the_data_changes_no_machine(normalize, weighted):
    X, y = regression()
    weight = np.linspace(0.5, 2.0, len(y)) if weighted else None
    params = {"p": 1, "C": 0.1, "tol": 1e-6, "normalize": normalize}
    plain = MKSVR(PAIR, **params).fit(X, y, weight)
    shifted = MKSVR(PAIR, **params).fit(X + 1e3, y, weight)
    assert shifted.certificate_.converged
    np.testing.assert_allclose(shifted.predict(X + 1e3), plain.predict(X), atol=1e-4)
    labels = y > 0
    plain = MKSVC(PAIR, **params).fit(X, labels, weight)
    shifted = MKSVC(PAIR, **params).fit(X + 1e3, labels, weight)
    np.testing.assert_allclose(
        shifted.decision_function(X + 1e3), plain.decision_function(X), atol=1e-4
    )


def test_an_offset_hides_less_where_kernels_are_centred():
    X, y = regression()
    model = MKSVR(PAIR, p=1, C=1.0).fit(X + 3e4, y)
    assert model.certificate_.converged
    assert model.certificate_.rel_gap <= model.tol
    params = {"p": 1, "C": 0.1, "normalize": None}
    plain, shifted = MKSVR(PAIR, **params).fit(X, y), MKSVR(PAIR, **params).fit(X + 1e4, y)
    np.testing.assert_allclose(shifted.predict(X + 1e4), plain.predict(X), atol=2e-7)


@pytest.mark.parametrize("multi_class", ["shared", "separate"])
def test_intercepts_belong_to_the_kernels_as_they_are(multi_class):
    """``decision_function = Σ_j weights_j K_j @ dual_coef_ + intercept_``, K_j not centred."""
    X, y = labelled()
    y = y + (X[:, 1] > 0.5)
    model = MKSVC([("a", Linear()), ("b", RBF(1.0))], normalize=None, multi_class=multi_class)
    model.fit(X + 2.0, y)
    stack = model.union_(X + 2.0, model.support_vectors_)
    weights = np.broadcast_to(model.weights_, (3, 2))
    scores = np.einsum(
        "kj,jrs,ks->rk", weights, [stack.kernel(0), stack.kernel(1)], model.dual_coef_
    )
    np.testing.assert_allclose(
        scores + model.intercept_, model.decision_function(X + 2.0), atol=1e-9
    )


# -- the machine that is certified -----------------------------------------------------------


@pytest.mark.parametrize("solver", ["interleaved", "newton", "smo-mkl"])
@pytest.mark.parametrize("C", [1.0, 1e5])
def test_the_machine_returned_has_the_objective_certified(solver, C):
    X, y = labelled(60, noise=0.1)
    kernels = [("a", Linear()), ("b", RBF(1.0))]
    model = MKSVC(kernels, p=2, C=C, solver=solver, tol=1e-2, normalize=None).fit(X, y)
    stack = model.union_(X)
    combined = stack.combine(model.weights_)
    coefficients = np.zeros(len(y))
    coefficients[model.support_] = model.dual_coef_[0]
    margins = np.where(y == 1, 1, -1) * (combined @ coefficients + model.intercept_[0])
    objective = 0.5 * coefficients @ combined @ coefficients
    objective += C * np.maximum(0.0, 1.0 - margins).sum()
    assert objective == pytest.approx(model.certificate_.primal, rel=1e-7)
    assert model.certificate_.dual <= objective


# -- kernels that are not positive semi-definite ---------------------------------------------


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_a_kernel_that_raises_the_objective_is_named(p):
    stack, targets = indefinite_pair()
    stack = KernelStack(stack.data, ["good", "with a hole"], gram=True, checked=True)
    y = (targets[:, 0] > 0).astype(int)
    with pytest.raises(ValueError, match=r"'with a hole' is not positive semi-def.*psd=\"clip\""):
        MKFDA("precomputed", p=p, reg=1e-4, normalize=None, tol=1e-3).fit(stack, y)


def test_no_advice_to_use_the_solver_in_use():
    X, y = labelled()
    for solver in ("newton", "analytic"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            MKFDA(p=1.1, solver=solver, max_iter=1, tol=1e-9).fit(X, y)
        (warning,) = caught
        assert ("or use solver" in str(warning.message)) == (solver != "newton")


def test_a_dual_objective_without_bound_is_an_error_of_the_kernel():
    """With the squared hinge nothing but the kernel keeps the dual variables finite."""
    X, y = labelled(20)
    hole = np.random.default_rng(1).standard_normal((20, 1))
    hole -= hole.mean()
    matrix = np.exp(-((X[:, None] - X) ** 2).sum(axis=2)) - 2.0 * hole @ hole.T / (hole**2).sum()
    stack = KernelStack.from_arrays([matrix], psd="ignore")
    model = MKSVC("precomputed", C=1e6, loss="squared_hinge", normalize=None)
    with pytest.raises(ValueError, match=r"no positive semi-definite kernel allows.*psd=\"clip\""):
        model.fit(stack, y)


# -- learnt regularisation -------------------------------------------------------------------


def repeated(m=40):
    """Rows of which some repeat others, with the same label."""
    X, y = labelled(m)
    return np.vstack([X, X[:5]]), np.concatenate([y, y[:5]])


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (MKFDA(RBF(5.0), p=1, reg="joint"), "λ"),
        (MKSVC(RBF(5.0), p=1, C="joint", loss="squared_hinge"), "C"),
    ],
)
def test_a_regularisation_at_its_least_value_is_reported(model, name):
    with pytest.warns(UserWarning, match=f"The learnt {name} is .*that rounding errors allow"):
        model.fit(*repeated())
    certificate = model.certificate_
    assert certificate.converged
    assert f"The learnt {name} is" in certificate.message
    assert certificate.note in str(certificate)


def test_a_learnt_reg_is_zero_where_it_can_be():
    model = MKFDA(RBF(5.0), p=1, reg="joint").fit(*labelled(40))
    assert model.reg_ == 0.0
    assert model.certificate_.converged
    assert model.certificate_.note == ""
    assert np.isfinite(model.left_out_log_proba_).all()


def test_learnt_weights_are_in_their_ball():
    """Beside kernels this large the least 1/C is no rounding error."""
    X, y = labelled(20)
    gram = 1e6 * (X @ X.T)
    model = MKSVC("precomputed", C="joint", loss="squared_hinge", normalize=None, p=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(KernelStack.from_arrays([gram, gram[::-1, ::-1]]), y)
    assert 1.0 / model.C_ + model.weights_.sum() <= 1.0 + 1e-12


# -- the objective of what is predicted ------------------------------------------------------


def test_predictions_far_from_zero():
    """Targets were divided by a number that is no power of two, which took digits of them."""
    X, y = regression()
    with pytest.warns(ConvergenceWarning, match="limited by rounding"):
        model = MKRidge(PAIR, reg=0.1, tol=1e-7).fit(X, y + 2.0**36)
    # Numbers this large are stored with errors of 1e-5; nothing else is lost.
    rounded = (y + 2.0**36) - 2.0**36
    same = MKRidge(PAIR, reg=0.1, tol=1e-7).fit(X, rounded)
    assert model.certificate_.primal == pytest.approx(same.certificate_.primal, rel=1e-9)
    objective = np.sum((model.predict(X) - y - 2.0**36) ** 2) / y.var()
    assert objective < model.certificate_.primal + model.certificate_.rounding


@pytest.mark.parametrize("offset", [1e3, 1e5])
def test_predictions_of_regions_far_from_zero(offset):
    """Shares of samples in regions were others in predictions than in the fit."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1]
    model = ConvexLocalizedSVR(PAIR, regions=KernelRegions(3, sharpness=8.0), C=10.0, tol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X + offset, y)
    errors = np.maximum(np.abs(y - model.predict(X + offset)) - model.epsilon, 0.0)
    certificate = model.certificate_
    # The loss is a part of the objective, of which the other part is not negative.
    excess = 10.0 * errors.sum() - certificate.primal
    assert excess <= certificate.tol * certificate.primal + certificate.rounding


def test_rounding_of_features_is_reported():
    """Features of landmarks that are nearly equal have few digits."""
    X, y = labelled(60)
    kernels = rbf_grid([100.0, 300.0])
    model = MKFDA(kernels, approximation=Nystrom(40), reg=1e-9, tol=1e-8, p=np.inf)
    with pytest.warns(ConvergenceWarning, match="limited by rounding"):
        model.fit(X, y)
    other = MKFDA(kernels, approximation=Nystrom(40, block_size=7), reg=1e-9, tol=1e-8, p=np.inf)
    with pytest.warns(ConvergenceWarning, match="limited by rounding"):
        other.fit(X, y)
    one, two = model.certificate_, other.certificate_
    assert abs(one.primal - two.primal) <= one.rounding + two.rounding
    assert abs(one.primal - two.primal) > 1e-8 * one.primal

"""MKFDA with every solver, and with the regularisation learnt."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.utils._param_validation import InvalidParameterError

from manykernels import MKFDA, KernelStack, rbf_grid
from manykernels.discriminant import fisher_targets
from manykernels.kernels.transforms import preparation
from manykernels.solvers import SDP, SILP, SIP, Newton
from tests.problems import SQUARE_SOLVERS, slow

IRIS = load_iris(return_X_y=True)


def binary():
    X, y = IRIS
    kept = y > 0
    return X[kept], np.array(["no", "versicolor", "virginica"])[y[kept]]


@pytest.mark.parametrize("name", SQUARE_SOLVERS)
@pytest.mark.parametrize("n_classes", [2, *slow(3)])
def test_predictions_do_not_depend_on_the_solver(name, n_classes):
    X, y = binary() if n_classes == 2 else IRIS
    p = 2.0 if name in ("dual",) else 1.0
    usual = MKFDA(rbf_grid([0.5, 2.0, 8.0]), p=p, reg=1.0).fit(X[::2], y[::2])
    approximate = name == "sdp-approx" and n_classes > 2
    tol = 1.0 if approximate else 1e-5
    other = MKFDA(rbf_grid([0.5, 2.0, 8.0]), p=p, reg=1.0, solver=name, tol=tol)
    other.fit(X[::2], y[::2])
    assert other.solver_ == name
    assert other.n_inner_solves_ >= 1
    allowed = other.certificate_.gap + usual.certificate_.gap + 1e-9
    assert abs(other.certificate_.primal - usual.certificate_.primal) <= allowed
    agreement = np.mean(other.predict(X[1::2]) == usual.predict(X[1::2]))
    assert agreement >= (0.9 if approximate else 1.0)


def test_solver_objects_and_names_are_the_same():
    X, y = binary()
    named = MKFDA(p=1, solver="newton").fit(X, y)
    given = MKFDA(p=1, solver=Newton()).fit(X, y)
    np.testing.assert_array_equal(named.weights_, given.weights_)
    assert given.solver_ == "newton"


def test_unknown_solvers_are_named_with_the_known_ones():
    X, y = binary()
    with pytest.raises(ValueError, match=r"solver must be one of .*'analytic'.*'sip'"):
        MKFDA(solver="simplex").fit(X, y)


@pytest.mark.parametrize("name", ["sdp", "qcqp", "silp"])
def test_programs_for_p_1_refuse_other_norms_before_kernels_are_computed(name):
    X, y = binary()

    def never(X, Y):
        raise AssertionError("a kernel was computed")

    with pytest.raises(ValueError, match=f"solver='{name}' works at p=1 only; solver='newton'"):
        MKFDA([("k", never)], p=2, solver=name).fit(X, y)


def test_the_semidefinite_program_refuses_what_would_take_hours():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9000, 2))
    with pytest.raises(ValueError, match=r"9000 samples.*SDP\(force=True\).*solver='newton'"):
        MKFDA(p=1, solver="sdp").fit(X, X[:, 0] > 0)
    assert SDP(force=True).force


def test_cutting_planes_warn_with_the_gap_they_reached():
    X, y = IRIS
    with pytest.warns(ConvergenceWarning, match=r"relative gap .*\(\|1 − S/θ\| is .*\)"):
        model = MKFDA(p=1, solver=SIP(eps=0.3), tol=1e-6).fit(X, y)
    assert model.certificate_.rel_gap > 1e-6


# -- reg="joint" ---------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", ["trace", "multiplicative", "spherical", None])
def test_learnt_reg_and_weights_share_one_budget(normalize):
    X, y = binary()
    model = MKFDA(rbf_grid([0.5, 2.0]), p=1, reg="joint", normalize=normalize).fit(X, y)
    unit = 1 / len(y) if normalize == "trace" else 1.0
    assert model.reg_ >= 0
    assert model.reg_ / unit + model.weights_.sum() == pytest.approx(1.0)
    assert len(model.weights_) == 2
    assert model.certificate_.converged
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("p", [1.0, 1.5, *slow(2.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_learnt_model_is_kernel_ridge_regression_with_that_reg(p, weighted):
    X, y = IRIS
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2, len(y)) if weighted else None
    model = MKFDA(rbf_grid([0.5, 2.0]), p=p, reg="joint", normalize="spherical")
    model.fit(X, y, sample_weight=weight)
    prepared = preparation("spherical").fit_transform(model.union_(X), sample_weight=weight)
    gram = prepared.combine(model.weights_)
    masses = np.bincount(y, weights=weight).astype(float)
    ridge = KernelRidge(alpha=model.reg_, kernel="precomputed")
    ridge.fit(gram, fisher_targets(y, masses), sample_weight=weight)
    ours = model.scalings_ - model.scalings_.mean(axis=0)
    theirs = ridge.dual_coef_
    residual = ours - theirs @ np.linalg.lstsq(theirs, ours, rcond=None)[0]
    assert np.abs(residual).max() <= 1e-6 * np.abs(ours).max()


@pytest.mark.parametrize("name", ["newton", "silp", "qcqp", "sdp", "analytic"])
def test_every_program_learns_the_same_reg(name):
    X, y = binary()
    X = X + np.random.default_rng(0).standard_normal(X.shape)
    kernels = rbf_grid([1.0, 4.0, 16.0])
    usual = MKFDA(kernels, p=1, reg="joint", normalize="trace", tol=1e-8).fit(X, y)
    solver = SILP(eps=1e-6) if name == "silp" else name
    other = MKFDA(kernels, p=1, reg="joint", normalize="trace", tol=1e-5, solver=solver)
    other.fit(X, y)
    assert other.certificate_.primal == pytest.approx(usual.certificate_.primal, rel=1e-5)
    assert other.reg_ == pytest.approx(usual.reg_, abs=2e-2 / len(y))


@pytest.mark.parametrize("name", ["dual", "coordinate"])
def test_solvers_that_need_a_number_say_so(name):
    X, y = binary()
    with pytest.raises(
        ValueError, match=f"solver='{name}' needs a number for reg or C, not .joint."
    ):
        MKFDA(p=2, reg="joint", solver=name).fit(X, y)


def test_learnt_reg_on_precomputed_kernels_frames_and_searches():
    X, y = binary()
    stack = KernelStack.from_arrays([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(axis=2))])
    model = MKFDA("precomputed", p=1, reg="joint").fit(stack, y)
    assert model.predict(stack).shape == y.shape
    framed = MKFDA(p=1, reg="joint").fit(pd.DataFrame(X, columns=list("abcd")), y)
    assert framed.reg_ == pytest.approx(MKFDA(p=1, reg="joint").fit(X, y).reg_)
    search = GridSearchCV(MKFDA(p=1), {"reg": [0.1, "joint"]}, cv=3).fit(X, y)
    assert search.best_params_["reg"] in (0.1, "joint")
    assert clone(model).reg == "joint"


@pytest.mark.parametrize("reg", ["auto", 0, -1.0, None, "Joint"])
def test_bad_reg(reg):
    X, y = binary()
    with pytest.raises(InvalidParameterError, match="'reg' parameter"):
        MKFDA(reg=reg).fit(X, y)


def test_learnt_reg_follows_the_fit_to_training_labels_not_the_noise():
    """Its known weakness: kernels that can fit single samples take the place of λ, whatever the
    labels; where none can, labels without structure leave λ almost the whole budget."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 5))
    noise = rng.permutation(np.arange(80) % 2)
    model = MKFDA([("linear", "linear")], p=1, reg="joint", normalize="trace")
    assert 80 * model.fit(X, noise).reg_ > 0.85
    narrow = clone(model).set_params(kernels=rbf_grid([0.1, 1.0], gamma=1.0))
    assert 80 * narrow.fit(X, noise).reg_ < 1e-3

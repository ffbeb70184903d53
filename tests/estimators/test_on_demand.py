"""Estimators on kernels that are computed when they are needed: as on a stack, at p = 1."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from manykernels import MKFDA, MKSVC, MKSVR, Denoise, KernelUnion, MKOneClassSVM, MKRidge
from manykernels.estimators import weights as weights_module
from manykernels.kernels import RBF, RBFSubsets, on_demand
from manykernels.kernels.adapters import CallableKernel
from manykernels.solvers import SIP, Newton, newton
from tests.problems import slow

M, D, TOL = 40, 30, 1e-9
STORED, DEMANDED = Newton(on_demand=False), Newton(on_demand=True)
FAMILY = RBFSubsets(100, [0.4, 1.0, 2.5], sizes=(2, 4))

rng_of = np.random.default_rng
rng = rng_of(0)
X = rng.standard_normal((M, D))
NEW = rng.standard_normal((20, D))
TARGET = X[:, 3] * X[:, 7] + X[:, 1] + 0.3 * rng.standard_normal(M)
TWO, THREE = TARGET > 0, np.digitize(TARGET, [-0.5, 0.5])
WEIGHT = rng.uniform(0.5, 2.0, M)

VARIANTS = {
    "svc": (MKSVC(), TWO),
    "svc of three classes": (MKSVC(), THREE),
    "svc, weights by class": (MKSVC(multi_class="separate"), THREE),
    "svc, squared": (MKSVC(loss="squared_hinge", normalize="spherical"), TWO),
    "svc, C learnt": (MKSVC(C="joint", loss="squared_hinge"), TWO),
    "fda": (MKFDA(reg=1.0), TWO),
    "fda of three classes": (MKFDA(reg=1.0, normalize=None), THREE),
    "fda, reg learnt": (MKFDA(reg="joint", normalize="trace"), THREE),
    "ridge": (MKRidge(), TARGET),
    "ridge of two targets": (MKRidge(multi_target="separate"), np.c_[TARGET, X[:, 0]]),
    "svr": (MKSVR(), TARGET),
    "one class": (MKOneClassSVM(), None),
}
FEW = ["svc of three classes", "ridge"]
MORE = [variant for variant in VARIANTS if variant not in FEW]


@pytest.fixture(autouse=True)
def _small_sets(monkeypatch):
    """So that there are kernels outside of the active sets."""
    monkeypatch.setattr(newton, "_CANDIDATES_ON_DEMAND", 50)


def outputs(model, rows):
    scores = getattr(model, "decision_function", None) or model.predict
    return scores(rows)


def fitted(model, target, solver, weight=None, kernels=FAMILY, **parameters):
    parameters = {"p": 1, "tol": TOL, **parameters}
    model = clone(model).set_params(kernels=kernels, solver=solver, **parameters)
    return model.fit(X, target, weight)


# Kernels that tell all samples apart leave no C too large.
@pytest.mark.filterwarnings("ignore:MKSVC. The learnt C is")
@pytest.mark.parametrize("weighted", [False, *slow(True)], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "variant", [*FEW, *(pytest.param(v, marks=pytest.mark.slow) for v in MORE)]
)
def test_they_are_as_on_a_stack(variant, weighted):
    model, target = VARIANTS[variant]
    weight = WEIGHT if weighted else None
    stored = fitted(model, target, STORED, weight)
    demanded = fitted(model, target, DEMANDED, weight)
    assert demanded.kernel_names_ == stored.kernel_names_
    assert demanded.weights_.shape == stored.weights_.shape
    assert demanded.certificate_.converged
    assert bool(demanded.certificate_.note) == (variant == "svc, C learnt")
    assert demanded.certificate_.primal == pytest.approx(stored.certificate_.primal, rel=TOL)
    # Both are within the gap of the minimum, which is nearly flat along some kernels.
    np.testing.assert_allclose(demanded.weights_, stored.weights_, atol=0.02)
    scale = np.abs(outputs(stored, NEW)).max()
    np.testing.assert_allclose(outputs(demanded, NEW), outputs(stored, NEW), atol=1e-5 * scale)
    for name in ("left_out_log_proba_", "left_out_predictions_"):
        if hasattr(stored, name):
            np.testing.assert_allclose(getattr(demanded, name), getattr(stored, name), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["svc of three classes", "fda", "ridge"])
def test_the_same_steps_find_the_same(variant, monkeypatch):
    """With the same sets of kernels in all rounds, to rounding error."""
    table = rng_of(1).standard_normal((M, 300))
    kernels = [(f"x{j}", RBF(columns=[j])) for j in range(300)]
    start_or_uniform, samples = newton.start_or_uniform, []

    def sampled(start, loss, domain):
        if start is None:
            samples.append(newton.sampled_kernels(loss))
            round_of = samples[-1], np.zeros(loss.n_kernels), newton._PART_OF_GAP
            start, _ = newton._solve_round(Newton().descend, loss, domain, 50, *round_of)
        return start_or_uniform(start, loss, domain)

    monkeypatch.setattr(newton, "start_or_uniform", sampled)
    model, target = VARIANTS[variant]
    stored, demanded = (
        clone(model).set_params(kernels=kernels, p=1, tol=1e-7, solver=one).fit(table, target)
        for one in (STORED, DEMANDED)
    )
    assert len(samples) == 1
    assert demanded.n_iter_ == stored.n_iter_
    np.testing.assert_allclose(demanded.weights_, stored.weights_, atol=1e-8)
    new = rng_of(2).standard_normal((20, 300))
    np.testing.assert_allclose(outputs(demanded, new), outputs(stored, new), atol=1e-8)
    assert demanded.certificate_.gap == pytest.approx(stored.certificate_.gap, abs=1e-9)


@pytest.mark.parametrize("variant", ["svc", *slow("svc of three classes", "ridge")])
def test_the_certificate_is_of_all_kernels(variant):
    """Recomputed from its dual point and matrices made one by one, by the formula of the bound."""
    model, target = VARIANTS[variant]
    model = fitted(model, target, DEMANDED, tol=1e-3)
    certificate, P = model.certificate_, np.eye(M) - 1.0 / M
    alpha, gains = certificate.dual_point, []
    for _, kernel in model.union_.kernels_:
        K = P @ kernel(X) @ P
        gains.append(np.einsum("mk,mn,nk->", alpha, M / np.trace(K) * K, alpha))
    if isinstance(model, MKSVC):
        # D(α, b) = y·α − ½ Σ_j b_j αᵀK_jα with 0 ≤ yα ≤ C = 1 and Σα = 0.
        signs = 2.0 * (target[:, None] == np.unique(target)[-alpha.shape[1] :]) - 1.0
        assert (signs * alpha).min() >= 0.0
        assert np.abs(alpha).max() <= 1.0
        assert np.abs(alpha.sum(axis=0)).max() < 1e-10
        bound = np.sum(signs * alpha) - 0.5 * max(gains)
    else:
        # α = 2U and D(U, b) = 2 h·U − U·U − Σ_j b_j UᵀK_jU/λ with λ = 1, h of mean 0 and size 1.
        h = (TARGET - TARGET.mean()) / TARGET.std()
        bound = h @ alpha[:, 0] - 0.25 * np.sum(alpha**2) - 0.25 * max(gains)
    assert bound == pytest.approx(certificate.dual, rel=1e-9)
    assert certificate.primal - bound <= 1e-3 * certificate.primal
    assert len(gains) == len(model.weights_) == len(model.kernel_names_) == 300


def test_only_kernels_in_use_are_kept():
    model = fitted(MKFDA(), TWO, DEMANDED, tol=1e-4)
    used = np.flatnonzero(model.weights_)
    assert 0 < len(used) < 60
    assert len(model._predictor.inputs) == len(used)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))
    # Sets of columns, names and weights, but nothing of the size of the kernels.
    assert len(pickle.dumps(model)) < 250_000


def test_fits_are_the_same_each_time():
    one, other = (fitted(MKSVC(), TWO, DEMANDED, tol=1e-4) for _ in range(2))
    assert np.array_equal(one.weights_, other.weights_)
    assert np.array_equal(one.decision_function(NEW), other.decision_function(NEW))


def test_unions_lists_and_few_kernels():
    kernels = [RBF("scale", width, columns=[j]) for j in range(D) for width in (0.5, 2.0)]
    by_name = KernelUnion([(f"k{j}", kernel) for j, kernel in enumerate(kernels)])
    stored = fitted(MKFDA(), TWO, STORED, kernels=by_name)
    listed = fitted(MKFDA(), TWO, DEMANDED, kernels=kernels)
    united = fitted(MKFDA(), TWO, DEMANDED, kernels=by_name)
    assert listed.kernel_names_[:2] == ["rbf1", "rbf2"]
    assert united.kernel_names_ == stored.kernel_names_
    for model in (listed, united):
        np.testing.assert_allclose(model.weights_, stored.weights_, atol=1e-4)
    alone = fitted(MKFDA(), TWO, DEMANDED, kernels=RBF())
    assert alone.weights_.tolist() == [1.0]


# -- the choice --------------------------------------------------------------------------------


def test_kernels_too_large_for_memory_are_on_demand(monkeypatch):
    needed = 300 * 8 * M**2
    monkeypatch.setattr(weights_module, "available_memory", lambda: 2 * needed)
    stored = fitted(MKFDA(), TWO, "newton", tol=1e-4)
    monkeypatch.setattr(weights_module, "available_memory", lambda: 2 * needed - 8)
    visits = []
    visit = on_demand.OnDemandKernels.visit
    monkeypatch.setattr(
        on_demand.OnDemandKernels, "visit", lambda *args: visits.append(1) or visit(*args)
    )
    with pytest.warns(UserWarning, match=r"300 kernels of 40 samples .*\(on_demand=True\) does"):
        demanded = fitted(MKFDA(), TWO, "newton", tol=1e-4)
    assert visits
    assert demanded.certificate_.primal == pytest.approx(stored.certificate_.primal, rel=1e-4)
    # Asked for, it is done in silence; or not at all.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(MKFDA(), TWO, DEMANDED, tol=1e-4)
        visits.clear()
        fitted(MKFDA(), TWO, STORED, tol=1e-4)
    assert not visits
    # No way around at p > 1, but no reason to refuse what may just fit.
    fitted(MKFDA(), TWO, "newton", p=2)
    monkeypatch.setattr(weights_module, "available_memory", lambda: needed - 8)
    with pytest.raises(MemoryError, match=r"300 kernels of 40 samples .* Pass p=1"):
        fitted(MKFDA(), TWO, "newton", p=2)


@pytest.mark.parametrize("p", [1.5, 2.0, np.inf])
def test_other_norms_are_refused_before_any_kernel(p, monkeypatch):
    monkeypatch.setattr(on_demand, "in_threads", None)
    with pytest.raises(ValueError, match=r"on demand at p=1 only, .*: pass p=1"):
        fitted(MKSVC(), TWO, DEMANDED, p=p)


def test_other_solvers_store_kernels(monkeypatch):
    monkeypatch.setattr(weights_module, "available_memory", lambda: 8)
    model = fitted(MKFDA(), TWO, SIP(), tol=1e-2)
    assert model.certificate_.converged


def test_precomputed_kernels_are_not_computed_on_demand():
    stack = FAMILY.fit(X)(X)
    model = MKFDA("precomputed", p=1, solver=DEMANDED).fit(stack, TWO)
    assert model.certificate_.converged


# -- bad kernels -------------------------------------------------------------------------------


def broken(x, y):
    return np.nan


def test_a_kernel_with_nan_is_named_and_nothing_is_kept():
    pairs = [(f"k{j}", RBF(columns=[j])) for j in range(D)]
    pairs[17] = ("broken", CallableKernel(broken))
    model = MKFDA(pairs, p=1, solver=DEMANDED)
    with pytest.raises(ValueError, match="'broken'"):
        model.fit(X, TWO)
    assert not hasattr(model, "weights_")


def test_constant_kernels_are_named_once():
    table = X.copy()
    table[:, 4] = 1.0
    pairs = [(f"x{j}", RBF(columns=[j])) for j in range(D)]
    for model in (MKSVC(), MKFDA(), MKRidge()):
        model.set_params(kernels=pairs, p=1, solver=DEMANDED)
        with pytest.warns(UserWarning, match="constant") as found:
            model.fit(table, TARGET if isinstance(model, MKRidge) else TWO)
        assert [str(one.message).count("'x4'") for one in found] == [1]
        assert found[0].filename == __file__
        assert model.weights_[4] == 0.0


def test_transforms_of_several_kernels_are_refused():
    with pytest.raises(ValueError, match="Denoise cannot be learnt"):
        fitted(MKFDA(denoise=Denoise(3)), TWO, DEMANDED)

"""Average, and what all rules that make one kernel of several have in common."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, KFold

from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    MKSVCCV,
    MKSVR,
    MKSVRCV,
    MKOneClassSVM,
    MKRidge,
    MKRidgeCV,
)
from manykernels.baselines import Alignment, Average, BestKernel, PolynomialCombination, Product
from manykernels.kernels import RBF
from tests.baselines.rule_problems import (
    GAUSSIANS,
    N_TEST,
    N_TRAIN,
    PAIRS,
    STACK,
    TEST_STACK,
    X_TEST,
    Y_TEST,
    T,
    X,
    Y,
)
from tests.problems import slow, some_slow

RULES = [Average, Product, BestKernel, Alignment, PolynomialCombination]
MACHINES = {
    "MKSVC": (MKSVC(C=2.0), Y),
    "MKFDA": (MKFDA(reg=0.5), Y),
    "MKSVCCV": (MKSVCCV(Cs=[0.1, 1.0]), Y),
    "MKFDACV": (MKFDACV(regs=[0.1, 1.0]), Y),
    "MKSVR": (MKSVR(), T),
    "MKRidge": (MKRidge(), np.column_stack([T, X[:, 2]])),
    "MKRidgeCV": (MKRidgeCV(regs=[0.1, 1.0]), T),
    "MKSVRCV": (MKSVRCV(Cs=[1.0], epsilons=[0.1]), T),
}


def answer(model, data):
    return getattr(model, "decision_function", model.predict)(data)


# -- the mean --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", some_slow(MACHINES, "MKSVCCV", "MKFDACV", "MKRidgeCV", "MKSVRCV"))
def test_any_machine_on_the_mean(name):
    """As the machine itself on the mean of normalised kernels, computed by hand."""
    machine, y = MACHINES[name]
    kernels, blocks = (np.moveaxis(np.array(stack), -1, 0) for stack in (STACK, TEST_STACK))
    variances = np.einsum("jii->j", kernels) / N_TRAIN - kernels.mean(axis=(1, 2))
    mean, block = ((k / variances[:, None, None]).mean(axis=0) for k in (kernels, blocks))
    alone = clone(machine).set_params(kernels="precomputed", normalize=None)
    if "CV" in name:
        alone.set_params(ps=[2.0])
    alone.fit(mean, y)
    for kernels_, data, new in ((PAIRS, X, X_TEST), ("precomputed", STACK, TEST_STACK)):
        model = Average(kernels_, estimator=machine).fit(data, y)
        assert_allclose(answer(model, new), answer(alone, block), rtol=1e-7, atol=1e-9)
        assert_allclose(model.weights_, 1 / 3)
    assert is_classifier(model) == is_classifier(machine)
    assert is_regressor(model) == is_regressor(machine)
    for method in ("predict_proba", "predict_log_proba", "transform"):
        assert hasattr(model, method) == hasattr(alone, method)
        if hasattr(model, method):
            found, expected = (getattr(m, method)(n) for m, n in ((model, new), (alone, block)))
            assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_the_mean_is_the_plain_sum_with_another_penalty():
    mean = Average(PAIRS, estimator=MKSVC(C=3.0, tol=1e-8)).fit(X, Y)
    plain = MKSVC(PAIRS, p=np.inf, C=1.0, tol=1e-8).fit(X, Y)
    assert_allclose(mean.decision_function(X_TEST), plain.decision_function(X_TEST), atol=1e-9)
    mean = Average(PAIRS, estimator=MKRidge(reg=1.0)).fit(X, T)
    plain = MKRidge(PAIRS, p=np.inf, reg=3.0).fit(X, T)
    assert_allclose(mean.predict(X_TEST), plain.predict(X_TEST), rtol=1e-10)


@pytest.mark.parametrize("rule", [Average, Product, Alignment])
@pytest.mark.parametrize("normalize", ["multiplicative", "spherical", "trace", None])
def test_a_single_kernel_is_itself(rule, normalize):
    C = 100.0 if normalize == "trace" else 1.0
    model = rule(PAIRS[1:2], estimator=MKSVC(C=C, tol=1e-8), normalize=normalize).fit(X, Y)
    alone = MKSVC(PAIRS[1:2], C=C, normalize=normalize, tol=1e-8).fit(X, Y)
    assert_allclose(model.decision_function(X_TEST), alone.decision_function(X_TEST), atol=1e-8)


def test_several_labels_per_sample():
    labels = (X[:, :2] > 0).astype(int)
    model = Average(PAIRS, estimator=MKFDACV(regs=[1.0])).fit(X, labels)
    assert model.predict(X_TEST).shape == (N_TEST, 2)
    assert np.mean(model.predict(X_TEST) == (X_TEST[:, :2] > 0)) > 0.7


# -- searches, splits and validation sets ----------------------------------------------------


@pytest.mark.parametrize("rule", [Average, Product, Alignment])
def test_a_search_over_the_machine(rule):
    cv, grid = KFold(3), {"estimator__C": [0.001, 1.0]}
    search = GridSearchCV(rule(GAUSSIANS, estimator=MKSVC()), grid, cv=cv).fit(X, Y)
    assert search.best_params_ == {"estimator__C": 1.0}
    assert search.score(X_TEST, Y_TEST) > 0.5


@pytest.mark.parametrize("rule", [Average, Alignment, *slow(BestKernel)])
def test_rows_of_no_weight_keep_their_numbers(rule):
    """In splits by row numbers, and in those of the support vectors."""
    weight = np.ones(N_TRAIN)
    weight[[0, 5, 6, 30]] = 0.0
    kept = np.flatnonzero(weight)
    splits = list(KFold(3).split(X))
    machine = MKSVCCV(Cs=[0.5, 1.0], cv=splits)
    model = rule(PAIRS, estimator=machine).fit(X, Y, weight)
    cut = [[np.searchsorted(kept, part[np.isin(part, kept)]) for part in one] for one in splits]
    machine = MKSVCCV(Cs=[0.5, 1.0], cv=cut)
    expected = rule(PAIRS, estimator=machine).fit(X[kept], Y[kept])
    assert_allclose(model.decision_function(X_TEST), expected.decision_function(X_TEST))
    assert model.estimator_.best_score_ == expected.estimator_.best_score_
    assert_array_equal(model.estimator_.support_, kept[expected.estimator_.support_])
    assert model.estimator_.cv is not None


@pytest.mark.parametrize("rule", [Average, Product, *slow(Alignment, BestKernel)])
def test_a_validation_set_is_given_like_x(rule):
    weight = np.ones(N_TRAIN)
    weight[3] = 0.0
    machine = MKSVCCV(Cs=[0.01, 1.0], cv=(X_TEST, Y_TEST))
    model = rule(GAUSSIANS, estimator=machine).fit(X, Y, weight)
    # It was learnt from the same samples as the machine that was judged.
    assert model.estimator_.best_score_ == model.score(X_TEST, Y_TEST)
    # The machine does not keep the kernels of the validation set.
    assert_array_equal(model.estimator_.cv[0], X_TEST)


def test_new_samples_are_compared_with_support_vectors_only():
    model = Average(PAIRS, estimator=MKSVC(C=10.0)).fit(X, Y == 0)
    support = model.estimator_.support_
    assert len(support) < N_TRAIN
    assert model._predictor.source.n_samples == len(support)


# -- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_kernels_of_the_machine_are_refused(rule):
    machine = type(rule()._given)(RBF())
    with pytest.raises(ValueError, match=f"kernels of its own, RBF.*pass them to {rule.__name__}"):
        rule(estimator=machine).fit(X, Y)


@pytest.mark.parametrize("rule", [Average, Product, Alignment])
def test_a_machine_that_predicts_nothing_is_refused(rule):
    with pytest.raises(ValueError, match="neither a classifier nor a regressor"):
        rule(estimator=MKOneClassSVM()).fit(X, Y)


def test_tol_is_that_of_the_machine_unless_given():
    assert Average(PAIRS, estimator=MKSVC(tol=1e-3)).fit(X, Y).estimator_.tol == 1e-3
    assert Average(PAIRS, estimator=MKSVC(tol=1e-3), tol=1e-5).fit(X, Y).estimator_.tol == 1e-5


def test_constant_kernels_are_named_once():
    kernels = [*PAIRS, ("same", RBF(1e-30))]
    with pytest.warns(UserWarning, match="Nothing can be learnt from .*'same'") as caught:
        Average(kernels).fit(X, Y)
    assert len(caught) == 1


# -- samples that lack views -----------------------------------------------------------------


@pytest.mark.parametrize("missing", ["mean", *slow("conditional")])
def test_samples_that_lack_views(missing):
    """The mean of completed kernels is their plain sum; their powers have the right machine."""
    rng = np.random.default_rng(0)
    views = {"a": X[:, :2].copy(), "b": X[:, 2:].copy()}
    new = {"a": X_TEST[:, :2].copy(), "b": X_TEST[:, 2:]}
    lacking = rng.random(N_TRAIN) < 0.2
    views["a"][lacking], views["b"][~lacking & (rng.random(N_TRAIN) < 0.2)] = np.nan, np.nan
    new["a"][:5] = np.nan
    given = {"kernels": RBF(), "missing": missing}
    mean = Average(estimator=MKSVC(C=2.0, tol=1e-8), **given).fit(views, Y)
    plain = MKSVC(p=np.inf, C=1.0, tol=1e-8, **given).fit(views, Y)
    assert_allclose(mean.decision_function(new), plain.decision_function(new), atol=1e-7)
    power = PolynomialCombination(estimator=MKFDA(), **given).fit(views, Y)
    machine = power.estimator_.certificate_
    assert_allclose(power.certificate_.objective, machine.primal, rtol=1e-9)
    for rule in (Alignment(**given), BestKernel(estimator=MKFDACV(regs=[1.0]), **given)):
        assert len(rule.fit(views, Y).predict(new)) == N_TEST

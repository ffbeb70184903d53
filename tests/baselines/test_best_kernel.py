"""BestKernel: the machine of the kernel that is best on folds that all kernels share."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

from manykernels import MKFDA, MKFDACV, MKSVCCV, MKSVRCV, KernelStack, MKRidgeCV
from manykernels.baselines import BestKernel
from manykernels.kernels import RBF
from tests.baselines.rule_problems import PAIRS, STACK, TEST_STACK, X_TEST, Y_TEST, T, X, Y
from tests.problems import slow

MACHINES = {
    "MKFDACV": (MKFDACV, {"regs": [0.01, 1.0]}, Y),
    "MKSVCCV": (MKSVCCV, {"Cs": [0.1, 1.0]}, Y),
    "MKRidgeCV": (MKRidgeCV, {"regs": [0.01, 1.0]}, T),
    "MKSVRCV": (MKSVRCV, {"Cs": [1.0], "epsilons": [0.1, 0.5]}, T),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "normalize"),
    [*((name, "multiplicative") for name in MACHINES), ("MKSVCCV", "spherical")],
)
def test_every_kernel_is_judged_as_by_the_machine_alone(name, normalize):
    machine, grid, y = MACHINES[name]
    splits = list(KFold(3).split(X))
    model = BestKernel(PAIRS, estimator=machine(cv=splits, **grid), normalize=normalize).fit(X, y)
    alone = [
        machine([pair], ps=[1.0], cv=splits, normalize=normalize, **grid).fit(X, y)
        for pair in PAIRS
    ]
    assert_allclose(model.scores_, [one.best_score_ for one in alone], rtol=1e-9)
    best = int(np.argmax(model.scores_))
    assert (model.best_index_, model.best_kernel_) == (best, PAIRS[best][0])
    assert_array_equal(model.weights_, np.eye(3)[best])
    assert_allclose(model.predict(X_TEST), alone[best].predict(X_TEST), rtol=1e-7)
    assert model.estimator_.kernel_names_ == [PAIRS[best][0]]
    on_stack = BestKernel("precomputed", estimator=machine(cv=splits, **grid), normalize=normalize)
    assert_allclose(on_stack.fit(STACK, y).scores_, model.scores_, rtol=1e-9)
    assert_allclose(on_stack.predict(TEST_STACK), model.predict(X_TEST), rtol=1e-7)


@pytest.mark.parametrize(
    "cv",
    [None, *slow(4, StratifiedKFold(3), ShuffleSplit(3, random_state=np.random.RandomState(0)))],
)
def test_all_kernels_have_the_same_folds(cv):
    """Equal kernels have equal scores, and the first of them is taken."""
    twice = [("noise", RBF(1.0).on([3, 4])), ("one", RBF(0.3).on([0, 1]))]
    kernels = [*twice, ("two", RBF(0.3).on([0, 1])), ("three", RBF(0.3).on([0, 1]))]
    model = BestKernel(kernels, estimator=MKSVCCV(Cs=[1.0], cv=cv)).fit(X, Y)
    assert len(set(model.scores_[1:])) == 1
    assert model.best_kernel_ == "one"
    # The machine has the parameter that it was given.
    assert model.estimator_.cv is cv or isinstance(cv, ShuffleSplit | StratifiedKFold)


def test_folds_are_dealt_by_all_kernels_together():
    """By one kernel alone they would depend on it."""
    seen = []

    class Noting(MKSVCCV):
        def fit(self, X, y, sample_weight=None):
            seen.append(self.cv)
            return super().fit(X, y, sample_weight)

    BestKernel(PAIRS, estimator=Noting(Cs=[1.0])).fit(X, Y)
    assert len(seen) == len(PAIRS)
    for other in seen[1:]:
        for one, two in zip(seen[0], other, strict=True):
            assert_array_equal(one[0], two[0])
            assert_array_equal(one[1], two[1])


def test_only_the_best_kernel_is_computed_for_new_samples():
    model = BestKernel(PAIRS, estimator=MKFDACV(regs=[1.0])).fit(X, Y)
    assert_array_equal(model._predictor.inputs, [model.best_index_])
    assert model.score(X_TEST, Y_TEST) > 0.6


def test_the_informative_kernel_is_chosen():
    ideal = np.equal.outer(Y, Y).astype(float)
    stack = KernelStack.from_arrays({"noise": STACK.kernel("noise"), "ideal": ideal})
    model = BestKernel("precomputed", estimator=MKFDACV(regs=[1.0])).fit(stack, Y)
    assert model.best_kernel_ == "ideal"
    assert model.scores_[1] == 1.0 > model.scores_[0]


# -- refusals --------------------------------------------------------------------------------


def test_folds_of_single_kernels_are_refused():
    with pytest.raises(
        ValueError, match=r"'closed-form' makes folds that depend on the kernel.*same folds"
    ):
        BestKernel(estimator=MKFDACV(cv="closed-form")).fit(X, Y)


def test_a_machine_without_a_grid_is_refused():
    with pytest.raises(ValueError, match="The 'estimator' parameter of BestKernel"):
        BestKernel(estimator=MKFDA()).fit(X, Y)

"""Random kernels for the laws that every fit with a convex objective obeys."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from manykernels import (
    MKFDA,
    MKGLM,
    MKSVC,
    MKSVR,
    KernelStack,
    MKCox,
    MKLogistic,
    MKOneClassSVM,
    MKRidge,
)
from manykernels.baselines import KimFDA
from manykernels.survival import survival_array
from tests.estimators.registry import Entry, parametrized
from tests.problems import labels_for, random_gram_matrices

N_TRAIN, N_TEST, N_KERNELS = 26, 9, 4
PS = [1, 1.1, 2, np.inf]
C, EPSILON, NU = 0.7, 0.1, 0.4
seeds = st.integers(0, 10_000)
norms = st.sampled_from(PS)
few = settings(deadline=None, max_examples=5)
NORMALIZATIONS = ["multiplicative", "spherical", "trace", None]
every_normalization = st.sampled_from(NORMALIZATIONS)

LAWFUL = {
    str(entry): entry
    for entry in [
        Entry(MKFDA, "two", {}, "two classes"),
        Entry(MKFDA, "three", {}, "three classes"),
        Entry(MKFDA, "three", {"class_weight": "balanced"}, "balanced"),
        Entry(MKFDA, "two", {"reg": "joint"}, "joint"),
        Entry(KimFDA, "two", {"reg": 0.1}),
        Entry(MKSVC, "two", {"C": C}, "two classes"),
        Entry(MKSVC, "three", {"C": C}, "three classes"),
        Entry(MKSVC, "three", {"C": C, "multi_class": "separate"}, "separate"),
        Entry(MKSVC, "three", {"C": C, "multi_class": "single"}, "single"),
        Entry(MKSVC, "two", {"C": C, "loss": "squared_hinge"}, "squared hinge"),
        Entry(MKSVC, "two", {"C": "joint", "loss": "squared_hinge"}, "joint"),
        Entry(MKSVR, "values", {"C": C, "epsilon": EPSILON}),
        Entry(MKOneClassSVM, "none", {"nu": NU}),
        Entry(MKRidge, "values"),
        Entry(MKRidge, "several", {}, "several"),
        Entry(MKRidge, "several", {"multi_target": "separate"}, "separate"),
        Entry(MKLogistic, "two", {}, "two classes"),
        Entry(MKLogistic, "three", {"class_weight": "balanced"}, "balanced"),
        Entry(MKGLM, "counts"),
        # With Efron's ties a weight of two is not a repeated row.
        Entry(MKCox, "survival", {"ties": "breslow"}),
    ]
}


def lawful(condition=lambda entry: True):
    """Parametrize a test over the entries for which something holds, variants for the slow run."""
    found = [entry for entry in LAWFUL.values() if condition(entry)]
    usual = [LAWFUL[name] for name in ("MKFDA, two classes", "MKSVC, two classes", "MKRidge")]
    return parametrized(found, lambda entry: entry not in usual)


class Problem:
    """Kernels between training samples, and between test and training samples."""

    def __init__(self, entry, seed=0):
        self.entry = entry = LAWFUL[entry] if isinstance(entry, str) else entry
        everything = random_gram_matrices(N_KERNELS, N_TRAIN + N_TEST, seed)
        if entry.target == "none":
            # Away from the origin, or else there is no half-space.
            everything = everything + 1.0
        self.train = everything[:, :N_TRAIN, :N_TRAIN]
        self.test = everything[:, N_TRAIN:, :N_TRAIN]
        self.test_diag = np.einsum("jii->ji", everything)[:, N_TRAIN:]
        self.y = labels_for(N_TRAIN, 3 if entry.target == "three" else 2, seed)
        if entry.target == "values":
            self.y = np.random.default_rng(seed).normal(size=N_TRAIN)
        if entry.target == "several":
            self.y = np.random.default_rng(seed).normal(size=(N_TRAIN, 3), scale=[1.0, 10.0, 0.1])
        if entry.target == "counts":
            self.y = np.random.default_rng(seed).poisson(2.0, N_TRAIN)
        if entry.target == "survival":
            time = np.random.default_rng(seed).integers(1, 12, N_TRAIN)
            self.y = survival_array((labels_for(N_TRAIN, 3, seed) > 0, time))

    def fit(self, train=None, y=None, sample_weight=None, **params):
        train = self.train if train is None else train
        y = self.y if y is None else y
        model = self.entry.make("precomputed", **{"tol": 1e-9, **params})
        return model.fit(KernelStack.from_arrays(train), y, sample_weight=sample_weight)

    def decide(self, model, test=None, test_diag=None):
        test = self.test if test is None else test
        test_diag = self.test_diag if test_diag is None else test_diag
        block = KernelStack.from_arrays(test, gram=False, row_diag=test_diag)
        return self.entry.scores(model, block)

    def assert_close(self, actual, expected, tolerance=1e-4):
        """Equal up to what may move within the gap.

        The unit of machines is that of margins and targets; scores of discriminants have none.
        """
        scale = np.abs(expected).max()
        if not self.entry.square:
            scale = max(scale, 1.0)
        assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)

    def assert_same_optimum(self, model, other, factor=1.0, rtol=None):
        expected = factor * other.certificate_.primal
        rtol = rtol or (1e-8 if self.entry.square else 3e-9)
        assert_allclose(model.certificate_.primal, expected, rtol=rtol, atol=0)

    def with_kernel_inserted(self, value):
        """Training kernels, test kernels and their diagonals with one more kernel."""
        parts = (self.train, self.test, self.test_diag)
        return [np.insert(part, 1, value, axis=0) for part in parts]

    def scaled(self, factors):
        """The same kernels in other units."""
        wide = factors[:, None, None]
        return wide * self.train, wide * self.test, factors[:, None] * self.test_diag

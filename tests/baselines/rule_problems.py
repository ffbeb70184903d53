"""Samples and kernels for the tests of rules that make one kernel of several."""

from __future__ import annotations

import numpy as np

from manykernels import KernelUnion
from manykernels.kernels import RBF, Linear

rng = np.random.default_rng(0)
N_TRAIN, N_TEST = 60, 25
EVERYTHING = rng.normal(size=(N_TRAIN + N_TEST, 5))
LABELS = np.digitize(EVERYTHING[:, 0] + 0.4 * EVERYTHING[:, 1] ** 2, [-0.3, 0.7])
VALUES = EVERYTHING[:, 0] + np.sin(2 * EVERYTHING[:, 1])
X, X_TEST = EVERYTHING[:N_TRAIN], EVERYTHING[N_TRAIN:]
Y, Y_TEST = LABELS[:N_TRAIN], LABELS[N_TRAIN:]
T, T_TEST = VALUES[:N_TRAIN], VALUES[N_TRAIN:]
PAIRS = [("shape", RBF(0.3).on([0, 1])), ("flat", Linear()), ("noise", RBF(1.0).on([3, 4]))]
UNION = KernelUnion(PAIRS).fit(X)
STACK, TEST_STACK = UNION(X), UNION(X_TEST, X)
# Kernels without negative values, all of whose powers are kernels.
GAUSSIANS = [("near", RBF(0.3).on([0, 1])), ("far", RBF(0.05)), ("noise", RBF(1.0).on([3, 4]))]
GAUSSIAN_UNION = KernelUnion(GAUSSIANS).fit(X)
GAUSSIAN_STACK, GAUSSIAN_TEST = GAUSSIAN_UNION(X), GAUSSIAN_UNION(X_TEST, X)

"""How sharp regions are to be, chosen by held-out samples.

As for gates (:mod:`manykernels.gating.judging`): of the candidates with no more error than plain
weights, which are the sharpness 0, the one with the least loss of held-out samples is taken, if it
is less by two standard errors. Otherwise all samples are in one region.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._folds import stratified_folds
from ..domains import product_domain
from ..gating.judging import HeldOutCurve, Judge
from ..gating.regions import KernelRegions
from ..losses import Loss
from ..solvers import Newton
from ._kernels import TrainingKernels
from ._learning import WeightLearning
from ._machine_path import PreparedKernels, outputs_of
from ._regional import Regions
from ._regional_path import by_sharpness
from ._rows import TrainingRows

#: Plain weights, then from shares that hardly differ to regions that are almost disjoint.
CANDIDATES = (0.0, 0.5, 2.0, 8.0)
# As many as judge the steps of a gate: each takes as long as four fits to two thirds of the rows.
_N_FOLDS = 3


@dataclass(frozen=True)
class SharpnessChoice:
    """Judges candidates by samples that neither regions nor weights have seen.

    `losses` makes the losses of some training samples on given kernels; `judge` knows the targets
    of all samples. `sample_weight` is that of the means by which kernels are centred.
    """

    rows: TrainingRows
    kernels: TrainingKernels
    normalize: str | None
    learning: WeightLearning
    losses: Callable[[Any, np.ndarray], list[Loss]]
    judge: Judge
    sample_weight: np.ndarray | None = None

    def of(self, regions: Regions) -> Regions:
        """The same regions, to be found with the sharpness that was chosen."""
        learner = regions.learner
        if not isinstance(learner, KernelRegions) or learner.sharpness != "auto":
            return regions
        best = self._best(learner) if learner.n_regions > 1 else CANDIDATES[0]
        n_regions = learner.n_regions if best > 0.0 else 1
        return Regions.found(n_regions, best, learner.random_state)

    def _best(self, learner: KernelRegions) -> float:
        n_rows = len(self.rows)
        labels = np.zeros(n_rows, int) if self.rows.labels is None else self.rows.labels
        folds = stratified_folds(labels, self.rows.groups, _N_FOLDS, self.rows.counts)
        if len(folds) < 2:
            # Nothing says that regions are better than none.
            return CANDIDATES[0]
        every = np.arange(n_rows)
        parts = [self._outputs(learner, np.delete(every, test), test) for test in folds]
        samples = np.concatenate(folds)
        judged = [self.judge(np.vstack(outputs), samples) for outputs in zip(*parts, strict=True)]
        return CANDIDATES[HeldOutCurve(judged).clearly_best]

    def _outputs(
        self, learner: KernelRegions, train: np.ndarray, test: np.ndarray
    ) -> list[np.ndarray]:
        """Outputs at the samples `test` for every candidate."""
        raw, counts = self.kernels.stack, self.rows.counts
        transform = self.kernels.preparation(self.normalize, center=False)
        counts = None if counts is None else counts[train]
        stack = transform.fit_transform(raw[np.ix_(train, train)], sample_weight=counts)
        block = transform.transform(raw[np.ix_(test, train)])
        weights = None if self.sample_weight is None else self.sample_weight[train]
        found = KernelRegions(learner.n_regions, random_state=learner.random_state)
        found.fit_part(stack, counts)
        return [
            self._outputs_of(prepared, train)
            for prepared in by_sharpness(found, CANDIDATES, stack, block, weights)
        ]

    def _outputs_of(self, kernels: PreparedKernels, train: np.ndarray) -> np.ndarray:
        domain = product_domain(self.learning.domain, kernels.n_regions)
        solutions = [
            Newton().solve(loss, domain, tol=self.learning.tol)
            for loss in self.losses(kernels.stack, train)
        ]
        return outputs_of(solutions, kernels.block)

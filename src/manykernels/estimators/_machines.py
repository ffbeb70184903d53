"""Support vector machines on weighted sums of kernels: their kernels, and what is kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._rounding import ROUNDING
from .._sklearn import safe_indexing
from ..kernels import KernelStack
from ..kernels.transforms import Center, Chain, StackTransform
from ._inputs import Source
from ._kernels import KernelExpansion, TrainingKernels
from ._learning import LearntWeights
from ._rows import TrainingRows

#: Relative gap of the inner machines as a part of `tol`: small enough that their gaps do not
#: decide whether the gap of the kernel weights is closed.
INNER_SHARE = 1e-3


class SupportAttributes:
    """Fitted attributes of support vector machines.

    Attributes
    ----------
    support_ : ndarray of int
        Row numbers of the support vectors (of any class).
    n_support_ : ndarray of shape (1,), or (n_classes,) for a classifier
        How many there are, by the class they belong to.
    support_vectors_ : table
        Their rows, unless precomputed.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        ``Σ_j weights_[j] K_j(X, support) @ dual_coef_.T + intercept_`` is the output, with K_j
        normalised. The machine is the one whose objective is ``certificate_.primal``; at a loose
        `tol` coefficients may be above C by a small factor that is common to all.
    intercept_ : ndarray of shape (n_outputs,)
    """


@dataclass(frozen=True)
class MachineKernels:
    """Kernels as support vector machines take them: normalised, and centred if they have a bias.

    The coefficients of a machine with a bias sum to zero, so that centring changes its bias only.
    Without it, the differences between samples would be lost in the rounding errors of a large
    part that all have in common.

    `transform` is the normalisation, `stack` are the normalised (and centred) kernels, `center`
    is the centring.
    """

    kernels: TrainingKernels
    transform: Chain
    stack: Any
    center: Center | None

    @classmethod
    def of(
        cls, rows: TrainingRows, normalize: str | None, solver: Any, *, has_bias: bool = True
    ) -> MachineKernels:
        """Compute or check the kernels of `rows`, and normalise them."""
        kernels = TrainingKernels.of(rows, rows.counts, shift_invariant=has_bias, solver=solver)
        return cls.prepared(kernels, rows, normalize, has_bias=has_bias)

    @classmethod
    def prepared(
        cls,
        kernels: TrainingKernels,
        rows: TrainingRows,
        normalize: str | None,
        *,
        has_bias: bool = True,
        step: StackTransform | None = None,
    ) -> MachineKernels:
        """Normalise kernels of `rows` that are known already; a `step` may follow."""
        transform = kernels.preparation(normalize, center=False)
        if step is not None:
            transform.steps.append(step)
        stack = kernels.prepared(transform, rows.counts)
        if not has_bias:
            return cls(kernels, transform, stack, None)
        center = Center()
        return cls(kernels, transform, center.fit_transform(stack), center)

    def uncentred(self, biases: np.ndarray, weights: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Biases of the same machines on the kernels before centring.

        For coefficients v with ``Σ_l v_l = 0`` and the offsets o_j of centring,
        ``Σ_l v_l (K_j(r, l) − o_j(r) − o_j(l)) = Σ_l v_l K_j(r, l) − o_j·v``.
        """
        if self.center is None:
            return biases
        used = np.flatnonzero(weights)
        corrected: np.ndarray = biases - weights[used] @ (self.center.select(used).offsets_ @ dual)
        return corrected

    def expansion(
        self, weights: np.ndarray, coefficients: np.ndarray, rows: np.ndarray
    ) -> KernelExpansion:
        """Outputs of machines with these coefficients of the training samples in `rows`."""
        transform = self.transform
        if self.center is not None:
            # Instead of centring, which would need all training samples.
            transform = Chain([*transform.steps, _SubtractRowMean().fit(self.stack)])
        source = self.kernels.source
        return KernelExpansion.of(source, transform, self.stack, weights, coefficients, rows)


class _SubtractRowMean(StackTransform):
    """Subtract from each row its mean over the columns.

    In exact arithmetic that changes no output, as coefficients sum to zero. Computed ones do so
    up to rounding errors, which large entries would magnify.
    """

    of_each_kernel = True

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: Any) -> None:
        """Nothing to learn."""

    def _transform(self, stack: KernelStack) -> KernelStack:
        n_columns = stack.shape[1]
        means = stack.apply(np.full((n_columns, 1), 1.0 / n_columns))[:, :, 0]
        return stack.shifted(means, np.zeros((stack.n_kernels, n_columns)))


@dataclass(frozen=True)
class SupportVectors:
    """The training samples with coefficients, at the positions `support`.

    `dual` has the coefficients of all training samples, (m, n_outputs), exactly zero where they
    are rounding errors.
    """

    dual: np.ndarray
    support: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, dual: np.ndarray) -> SupportVectors:
        """From the coefficients that a solver returns."""
        negligible = np.abs(dual) <= ROUNDING * np.abs(dual).max(initial=0.0)
        dual = np.where(negligible, 0.0, dual)
        return cls(dual, np.flatnonzero(dual.any(axis=1)))

    @property
    def kept(self) -> np.ndarray:
        """The support vectors; if there are none (a constant machine), one sample instead."""
        return self.support if len(self.support) else np.array([0])

    @property
    def coefficients(self) -> np.ndarray:
        """Those of the samples that are kept, (n_kept, n_outputs)."""
        return self.dual[self.kept]

    def attributes(self, rows: TrainingRows, source: Source) -> dict[str, Any]:
        """Fitted attributes for users; `source` has the samples that are kept."""
        n_support = len(self.support)
        counts = np.array([n_support])
        if rows.classes is not None:
            counts = np.bincount(rows.labels[self.support], minlength=len(rows.classes))
        attributes = {
            **source.attributes,
            "support_": rows.numbers[self.support].astype(np.int32),
            "n_support_": counts.astype(np.int32),
            "dual_coef_": np.ascontiguousarray(self.dual[self.support].T),
        }
        if "X_fit_" in attributes:
            kept = attributes.pop("X_fit_")
            attributes["support_vectors_"] = kept if n_support else safe_indexing(kept, [])
        return attributes


@dataclass(frozen=True)
class LearntMachine:
    """Machines with the kernel weights that were learnt along with them."""

    rows: TrainingRows
    kernels: MachineKernels
    learnt: LearntWeights
    vectors: SupportVectors
    intercept: np.ndarray

    @classmethod
    def of(
        cls, rows: TrainingRows, kernels: MachineKernels, learnt: LearntWeights
    ) -> LearntMachine:
        """The machines at the weights that were learnt."""
        evaluations = learnt.evaluations
        vectors = SupportVectors.of(np.hstack([one.coefficients for one in evaluations]))
        intercept = np.concatenate(
            [
                kernels.uncentred(one.biases, own, one.coefficients)
                for own, one in zip(learnt.weights, evaluations, strict=True)
            ]
        )
        return cls(rows, kernels, learnt, vectors, intercept)

    def widened(self, shift: np.ndarray, cost: float) -> LearntMachine:
        """The same with `shift` added to the intercepts; its `cost` counts as rounding error."""
        learnt: Any = self.learnt
        return replace(self, learnt=learnt.with_rounding(cost), intercept=self.intercept + shift)

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes."""
        weights, vectors = self.learnt.weights, self.vectors
        expansion = self.kernels.expansion(
            weights if len(weights) > 1 else weights[0], vectors.coefficients, vectors.kept
        )
        return {
            **self.rows.attributes,
            **self.learnt.attributes,
            **vectors.attributes(self.rows, self.kernels.kernels.source.keep(vectors.kept)),
            "intercept_": self.intercept,
            "_expansion": expansion,
        }

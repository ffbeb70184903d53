"""Support vector machines on weighted sums of kernels: preparation, solution, what is kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._rounding import ROUNDING
from .._sklearn import safe_indexing
from ..kernels import KernelStack
from ..kernels.transforms import Center, Chain, StackTransform, preparation
from ._inputs import Source
from ._kernels import KernelExpansion, TrainingKernels
from ._learning import Learnt
from ._rows import TrainingRows

#: Part of `tol` that is left to the inner solutions: gaps of the machines must not decide
#: whether the gap of the weights is closed.
INNER_SHARE = 1e-3


class SupportAttributes:
    """What support vector machines with kernel weights keep.

    Attributes
    ----------
    support_ : ndarray of int
        Row numbers of the support vectors (of any class).
    n_support_ : ndarray of shape (1,)
        How many there are.
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
    """Kernels as support vector machines with or without a bias take them.

    Attributes
    ----------
    kernels : TrainingKernels
    transform : Chain
        The normalisation.
    stack : KernelStack
        Normalised. Where the coefficients of the machine sum to zero, centring changes nothing
        but the bias; kernels are centred then, because what is common to all samples would
        drown their differences in rounding errors.
    offsets : ndarray of shape (n_kernels, m) or None
        o_j: centring takes ``o_j(r) + o_j(l)`` from the entry (r, l) of kernel j.
    """

    kernels: TrainingKernels
    transform: Chain
    stack: Any
    offsets: np.ndarray | None

    @classmethod
    def of(
        cls, rows: TrainingRows, normalize: str | None, solver: Any, *, has_bias: bool = True
    ) -> MachineKernels:
        """Compute or check the kernels of `rows`, and normalise them."""
        kernels = TrainingKernels.of(rows, rows.counts, shift_invariant=has_bias, solver=solver)
        transform = preparation(normalize, center=False)
        stack = kernels.prepared(transform, rows.counts)
        if not has_bias:
            return cls(kernels, transform, stack, None)
        center = Center()
        stack = center.fit_transform(stack)
        return cls(kernels, transform, stack, center.offsets_)

    def uncentred(self, biases: np.ndarray, weights: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """b of machines on the kernels before centring.

        ``Σ_l v_l (K_j(r, l) − o_j(r) − o_j(l)) = Σ_l v_l K_j(r, l) − o_j·v`` where ``Σ v_l = 0``.
        """
        if self.offsets is None:
            return biases
        corrected: np.ndarray = biases - weights @ (self.offsets @ dual)
        return corrected

    def expansion(
        self, weights: np.ndarray, coefficients: np.ndarray, rows: np.ndarray
    ) -> KernelExpansion:
        """Outputs of machines whose coefficients are those of some `rows` of training."""
        transform = self.transform
        if self.kernels.shift_invariant:
            # What prediction does in the place of centring, which would need all samples.
            transform = Chain([*transform.steps, FromMean().fit(self.stack)])
        source = self.kernels.source
        return KernelExpansion.of(source, transform, self.stack, weights, coefficients, rows)


class FromMean(StackTransform):
    """Measure every row from its mean over the columns.

    Coefficients that sum to zero do not see it, but where they do so up to rounding errors only,
    large entries would count.
    """

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: Any) -> None:
        """Nothing to learn."""

    def _transform(self, stack: KernelStack) -> KernelStack:
        n_columns = stack.shape[1]
        means = stack.apply(np.full((n_columns, 1), 1.0 / n_columns))[:, :, 0]
        return stack.shifted(means, np.zeros((stack.n_kernels, n_columns)))


@dataclass(frozen=True)
class SupportVectors:
    """Training samples with coefficients.

    Attributes
    ----------
    dual : ndarray of shape (m, n_outputs)
        Coefficients of all training samples, exactly zero where they are rounding errors.
    support : ndarray of int
        Those samples that have some.
    """

    dual: np.ndarray
    support: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, dual: np.ndarray) -> SupportVectors:
        """From coefficients as a solver leaves them."""
        negligible = np.abs(dual) <= ROUNDING * np.abs(dual).max(initial=0.0)
        dual = np.where(negligible, 0.0, dual)
        return cls(dual, np.flatnonzero(dual.any(axis=1)))

    @property
    def kept(self) -> np.ndarray:
        """The support vectors or, in a machine that is a constant, one sample in their place."""
        return self.support if len(self.support) else np.array([0])

    @property
    def coefficients(self) -> np.ndarray:
        """Of the samples that are kept, (n_kept, n_outputs)."""
        return self.dual[self.kept]

    def attributes(self, rows: TrainingRows, source: Source) -> dict[str, Any]:
        """What an estimator keeps for its users; `source` has the samples that are kept."""
        counts = np.array([len(self.support)])
        if rows.classes is not None:
            counts = np.bincount(rows.labels[self.support], minlength=len(rows.classes))
        attributes = {
            "support_": rows.numbers[self.support].astype(np.int32),
            "n_support_": counts.astype(np.int32),
            "dual_coef_": np.ascontiguousarray(self.dual[self.support].T),
        }
        known = dict(source.attributes)
        if "X_fit_" in known:
            table = known.pop("X_fit_")
            enough = len(self.support) > 0
            attributes["support_vectors_"] = (
                table if enough else safe_indexing(table, np.arange(0))
            )
        return {**known, **attributes}


@dataclass(frozen=True)
class LearntMachine:
    """Kernel weights and machines that were learnt together.

    Attributes
    ----------
    learnt : Learnt
    intercept : ndarray of shape (n_outputs,)
    """

    rows: TrainingRows
    kernels: MachineKernels
    learnt: Learnt
    vectors: SupportVectors
    intercept: np.ndarray

    @classmethod
    def of(cls, rows: TrainingRows, kernels: MachineKernels, learnt: Learnt) -> LearntMachine:
        """The machines at the weights that were learnt."""
        evaluations: list[Any] = [solution.evaluation for solution in learnt.solutions]
        vectors = SupportVectors.of(np.hstack([one.coefficients for one in evaluations]))
        intercept = np.concatenate(
            [
                kernels.uncentred(one.biases, own, one.coefficients)
                for own, one in zip(learnt.weights, evaluations, strict=True)
            ]
        )
        return cls(rows, kernels, learnt, vectors, intercept)

    def widened(self, shift: np.ndarray, cost: float) -> LearntMachine:
        """The same with `shift` added to the intercepts, which costs so much of the objective."""
        learnt = self.learnt.with_rounding(cost)
        return replace(self, learnt=learnt, intercept=self.intercept + shift)

    @property
    def attributes(self) -> dict[str, Any]:
        """What an estimator keeps."""
        weights = self.learnt.weights
        expansion = self.kernels.expansion(
            weights if len(weights) > 1 else weights[0],
            self.vectors.coefficients,
            self.vectors.kept,
        )
        return {
            **self.rows.attributes,
            **self.learnt.attributes,
            **self.vectors.attributes(self.rows, expansion.source),
            "intercept_": self.intercept,
            "_expansion": expansion,
        }

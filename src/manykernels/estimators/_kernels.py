"""Kernels of the training rows, and sums of kernels between new rows and these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from .._sklearn import num_samples
from .._warnings import warn_caller
from ..discriminant import LabelledKernels
from ..kernels import KernelStack
from ..kernels.completion import preparation_with
from ..kernels.streamed import StreamedKernels
from ..kernels.transforms import Chain
from ._held_out import TargetedKernels
from ._inputs import Source
from ._rows import TrainingRows

#: Most entries of a test block, of all kernels if they are computed together: 64 MiB of memory.
BLOCK_ENTRIES = 2**23
# How many kernels a warning names.
_NAMES_SHOWN = 50


@dataclass(frozen=True)
class TrainingKernels:
    """Kernels of the training rows as they were computed or passed, and the source for new rows.

    `shift_invariant` says whether adding a constant to a kernel changes nothing for the estimator,
    `by_default` whether nobody has chosen the kernels.
    """

    stack: Any
    source: Source
    shift_invariant: bool
    missing: str = "error"
    by_default: bool = False

    @classmethod
    def of(
        cls,
        rows: TrainingRows,
        sample_weight: np.ndarray | None,
        *,
        shift_invariant: bool = True,
        solver: Any = None,
    ) -> TrainingKernels:
        """Compute or check the kernels of `rows`; widths are learnt with these sample weights."""
        stack, source = rows.data.compute(sample_weight, shift_invariant, solver)
        by_default = getattr(rows.data, "kernels", stack) is None
        return cls(stack, source, shift_invariant, rows.data.missing, by_default)

    def preparation(self, normalize: str | None, *, center: bool = True) -> Chain:
        """The transform of these kernels, not yet fitted; it begins with their completion."""
        return preparation_with(self.missing, normalize, center=center)

    def labelled(self, rows: TrainingRows) -> LabelledKernels:
        """These kernels with the class labels and weights of the rows."""
        return LabelledKernels(
            self.stack, rows.labels, rows.classes, rows.weights, rows.counts, rows.groups
        )

    def targeted(self, rows: TrainingRows) -> TargetedKernels:
        """These kernels with the targets and weights of the rows."""
        return TargetedKernels(self.stack, rows.targets, rows.counts, rows.groups)

    def prepared(self, transform: Chain, sample_weight: np.ndarray | None) -> Any:
        """The kernels transformed by `transform`, which is fitted here."""
        stack = transform.fit_transform(self.stack, sample_weight=sample_weight)
        self.warn_of_constants(transform)
        return stack

    def warn_of_constants(self, transform: Chain) -> None:
        """Warn of kernels that nothing can be learnt from, `transform` being fitted to them.

        Called by the fit itself, not for its folds. The text is the same in every fit of a
        search, so that Python's filter of warnings shows it once. Of kernels on demand it is known
        when a solver has seen them.
        """
        if self.stack.on_demand:
            self.stack.when_visited(lambda: self._warn_of_constants(transform))
        elif len(self.stack) > 1:
            self._warn_of_constants(transform)

    def _warn_of_constants(self, transform: Chain) -> None:
        stack = self.stack
        useless = stack.without_variance()
        if len(useless) and not self.shift_invariant:
            found = stack.select(useless).row_diag if stack.on_demand else stack.row_diag[useless]
            useless = useless[~found.any(axis=1)]
        # Normalisations by the variance make constant kernels zero for every estimator.
        erased = transform.erased()
        useless = np.union1d(useless, erased)
        if self.by_default:
            useless = _whole_views(useless, stack.names)
        if not len(useless):
            return
        names = ", ".join(repr(stack.names[j]) for j in useless[:_NAMES_SHOWN])
        if len(useless) > _NAMES_SHOWN:
            names += f" and {len(useless) - _NAMES_SHOWN} more"
        kind, way_out = "zero", ""
        if self.shift_invariant or len(erased):
            kind = "constant (or zero)"
            way_out = " If the data behind them do vary, rounding hides it: centre them."
        warn_caller(
            f"Nothing can be learnt from kernels that are {kind} on training samples: {names}."
            + way_out,
            UserWarning,
        )


def _whole_views(kernels: np.ndarray, names: list[str]) -> np.ndarray:
    """Those of some default kernels whose view has no others, by the names "view:kernel"."""
    views = np.array([name.rpartition(":")[0] for name in names])
    return kernels[~np.isin(views[kernels], np.delete(views, kernels))]


@dataclass(frozen=True)
class KernelExpansion:
    """``Σ_i coefficient_i Σ_j β_j K_j(x, x_i)`` for new samples x.

    `source` has the training samples x_i with coefficients. `transform` prepares its kernels at
    the positions `inputs`. The `weights` β of what results are (n_used,) for all outputs or
    (n_outputs, n_used); the `coefficients` are (n_samples, n_outputs), or
    (n_used, n_samples, n_outputs) if each kernel has its own.
    """

    source: Source
    transform: Chain
    inputs: np.ndarray
    weights: np.ndarray
    coefficients: np.ndarray

    @classmethod
    def of(
        cls,
        source: Source,
        transform: Chain,
        stack: KernelStack | StreamedKernels,
        weights: np.ndarray,
        coefficients: np.ndarray,
        rows: np.ndarray | None = None,
    ) -> KernelExpansion:
        """Leave out kernels whose part in the sum is a rounding error.

        `stack` is what `transform` made of the training kernels, perhaps several of one. `rows`
        are the training samples with coefficients; None if all have some.
        """
        used = stack.contributing(weights if weights.ndim == 1 else weights.max(axis=0))
        # If no kernel has variance, outputs are zero, and predictions are those of the intercept.
        used = used if len(used) else np.array([0])
        inputs = transform.sources(used)
        transform = transform.select(used)
        if rows is not None:
            source, transform = for_columns(source, transform, rows)
        coefficients = coefficients[used] if coefficients.ndim == 3 else coefficients
        return cls(source, transform, inputs, weights[..., used], coefficients)

    def outputs(
        self, estimator: Any, X: Any, coefficients: np.ndarray | None = None
    ) -> np.ndarray:
        """``Σ_j β_j K_j(X, training samples) @ coefficients``, (n_rows, n_outputs).

        Other coefficients than those of the fit give other functions of X.
        """
        return self.outputs_of(self.source.read(estimator, X), coefficients)

    def outputs_of(self, data: Any, coefficients: np.ndarray | None = None) -> np.ndarray:
        """As :meth:`outputs`, of what the source has read."""
        coefficients = self.coefficients if coefficients is None else coefficients
        outputs = np.empty((int(num_samples(data)), coefficients.shape[-1]))
        for rows, block in self.blocks(data):
            if coefficients.ndim == 3:
                # (n_used, 1, 1), or (n_used, 1, n_outputs) if outputs have weights of their own.
                weights = np.atleast_2d(self.weights).T[:, None]
                outputs[rows] = block.apply_each(weights * coefficients)
            elif self.weights.ndim == 1:
                outputs[rows] = block.apply_combined(self.weights, coefficients)
            else:
                products = block.apply(coefficients)
                outputs[rows] = np.einsum("kj,jrk->rk", self.weights, products)
        return outputs

    def blocks(self, data: Any) -> Iterator[tuple[slice, Any]]:
        """Kernels between rows that the source has read and its samples, in blocks of rows."""
        n_kernels = max(self.weights.shape[-1], len(self.inputs))
        return transformed_blocks(self.source, self.transform, self.inputs, data, n_kernels)


def for_columns(source: Source, transform: Chain, columns: np.ndarray) -> tuple[Source, Chain]:
    """The source and the transform of blocks against some of the training samples."""
    # A completion compares new samples with all training samples.
    kept = source if transform.needs_all_columns else source.keep(columns)
    return kept, transform.for_columns(columns)


def transformed_blocks(
    source: Source, transform: Chain, inputs: np.ndarray, data: Any, n_kernels: int
) -> Iterator[tuple[slice, Any]]:
    """Kernels between rows that a source has read and its samples, in blocks of rows.

    `transform` makes `n_kernels` or fewer of the kernels at the positions `inputs`.
    """
    height = max(1, BLOCK_ENTRIES // (n_kernels * source.n_samples))
    for rows in gen_batches(int(num_samples(data)), height):
        yield rows, transform.transform(source.block(data, rows, inputs))

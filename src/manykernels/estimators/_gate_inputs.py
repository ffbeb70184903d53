"""What a gate looks at: tables of training rows and of new ones, and the features made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._sklearn import num_samples, safe_indexing
from ..gating import Gate, KernelComponents
from ..kernels import KernelStack, Views
from ..kernels.transforms import Chain
from ._kernels import KernelExpansion, TrainingKernels
from ._rows import TrainingRows


@dataclass(frozen=True)
class TableReader:
    """Reads the table of a gate from the rows of X.

    It may be one view, or the values of one precomputed kernel (an empirical kernel map) at those
    `columns` of test blocks that belong to training samples in use; None if all do. `name` is that
    of the view or kernel.
    """

    name: str | None
    columns: np.ndarray | None

    def __call__(self, data: Any) -> Any:
        """The table of checked rows."""
        if isinstance(data, Views):
            return self._of_views(data)
        if not isinstance(data, KernelStack):
            return data
        if self.name is None and data.features is None:
            raise ValueError(
                "The gate was fitted on the table of a stack, which this one lacks: pass "
                "stack.with_features(table of these samples)."
            )
        if self.name is None:
            return data.features
        block = data.kernel(self.name)
        if np.isnan(block).any():
            raise ValueError(
                f"The gate looks at kernel {self.name!r}, which some samples lack. Name a "
                "kernel that all samples have, or pass stack.with_features(table)."
            )
        return block if self.columns is None else block[:, self.columns]

    def _of_views(self, views: Views) -> Any:
        chosen = views if self.name is None else views.take([views.position(self.name)], axis=1)
        lacking = [name for name in chosen if not chosen.has(name).all()]
        if lacking:
            raise ValueError(
                f"The gate looks at view {lacking[0]!r}, which some samples lack. Name a view "
                "that all samples have, gating_features=<name of a view>, or leave it to the "
                "default, which looks at all kernels."
            )
        try:
            return chosen.joined()
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"The gate looks at numbers: {error}. Name a view of numbers: "
                "gating_features=<name of a view>."
            ) from error


@dataclass(frozen=True)
class ComponentReader:
    """Principal components of the mean kernel, see :class:`~manykernels.gating.KernelComponents`.

    `expansion` are sums of the mean kernel with training samples.
    """

    expansion: KernelExpansion
    offsets: np.ndarray

    @classmethod
    def learn(
        cls,
        what: KernelComponents | None,
        kernels: TrainingKernels,
        transform: Chain,
        stack: Any,
        counts: np.ndarray | None,
    ) -> tuple[ComponentReader, np.ndarray]:
        """From kernels of training rows, prepared by `transform`; and components of these rows."""
        components = KernelComponents() if what is None else what
        found, weights = components.learn(stack, counts), components.weights(stack.n_kernels)
        expansion = KernelExpansion.of(
            kernels.source, transform, stack, weights, found.axes, found.rows
        )
        of_training = stack[:, found.rows].apply_combined(weights, found.axes) - found.offsets
        return cls(expansion, found.offsets), of_training

    def __call__(self, data: Any) -> np.ndarray:
        """Components of checked rows."""
        return self.expansion.outputs_of(data) - self.offsets


class NoTable:
    """For gates that know rows by their number alone."""

    def __call__(self, data: Any) -> np.ndarray:
        """A table without columns."""
        return np.empty((num_samples(data), 0))


@dataclass(frozen=True)
class GateInput:
    """What the gate of a fitted model looks at."""

    features: Any
    reader: Any

    def transform(self, data: Any) -> Any:
        """Gating features of checked rows."""
        return self.features.transform(self.reader(data))


@dataclass(frozen=True)
class GateTable:
    """The table of the training rows, and what features are made of it; `what` is as for a gate.

    `refitted` says whether features are to be learnt again when samples are held out: those that
    may have been learnt from the targets, or that know training rows only.
    """

    rows: TrainingRows
    gate: Gate
    what: Any
    reader: Any
    table: Any
    refitted: bool

    @classmethod
    def of(cls, rows: TrainingRows, gate: Gate, what: Any) -> GateTable | None:
        """The table that was chosen by ``gating_features``; None if that are kernels."""
        data = rows.data.X
        if not gate.features(None).reads_table:
            return cls(rows, gate, None, NoTable(), NoTable()(data), refitted=True)
        own_table = isinstance(data, KernelStack) and data.features is not None
        if isinstance(what, KernelComponents) or (what is None and not own_table):
            return None
        named = isinstance(data, KernelStack | Views) and isinstance(what, str)
        if isinstance(data, KernelStack) and not named and not own_table:
            raise ValueError(
                'With kernels="precomputed" there are no columns to choose gating_features from: '
                "pass stack.with_features(table), the name of a kernel of the stack, one of "
                f"{', '.join(data.names)}, or None, principal components of the kernels."
            )
        name = what if named else None
        transformer = what[1] if isinstance(what, tuple) and len(what) == 2 else what
        # Training matrices have columns for the samples in use only.
        table = TableReader(name, None)(data)
        reader = TableReader(name, rows.data.columns)
        inner = None if named else what
        return cls(rows, gate, inner, reader, table, refitted=hasattr(transformer, "fit"))

    def learn(self) -> tuple[GateInput, Any]:
        """The input of the gate, and the features of the training rows."""
        rows, features = self.rows, self.gate.features(self.what)
        learnt = features.fit_transform(self.table, rows.targets, sample_weight=rows.counts)
        return GateInput(features, self.reader), learnt

    def held_out(self, learnt: Any, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
        """Features of training samples and of those that are held out; `learnt` are all."""
        if not self.refitted:
            return learnt[train], learnt[test]
        rows, features = self.rows, self.gate.features(self.what)
        targets = None if rows.targets is None else rows.targets[train]
        counts = None if rows.counts is None else rows.counts[train]
        table, new = (safe_indexing(self.table, part) for part in (train, test))
        of_training = features.fit_transform(table, targets, sample_weight=counts)
        return of_training, features.transform(new)

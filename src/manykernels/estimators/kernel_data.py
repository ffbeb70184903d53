"""Kernels of the training rows, and predictors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import gen_batches

from ..discriminant import Samples, fisher_targets
from ..kernels import KernelStack, KernelUnion, Views
from ..kernels.completion import preparation_with, refuse_samples_without_kernels
from ..kernels.composition import views_of
from ..kernels.on_demand import StreamedKernels
from ..kernels.slopes import form_of, slopes
from ..kernels.tables import Table, naming
from ..kernels.transforms import Center, Chain
from ..losses.left_out import LeavesOut
from ..losses.square import SquareLoss
from ..utils.numerics import EPS, ROUNDING
from ..utils.sklearn import num_samples, safe_indexing, warn_caller
from ..utils.storable import storable
from .base import KernelEstimator
from .inputs import Source, TableSource, TrainingTable
from .training_rows import TrainingRows

# -- Kernels of the training rows, and sums of kernels between new rows and these -----------------


#: Most entries of a test block, of all kernels if they are computed together: 64 MiB of memory.
BLOCK_ENTRIES = 2**23
# How many kernels a warning names.
_NAMES_SHOWN = 50


@dataclass(frozen=True)
class TrainingKernels:
    """Kernels of the training rows as they were computed or passed, and the source for new rows.

    `shift_invariant` says whether adding a constant to a kernel changes nothing for the estimator,
    `by_default` whether ``kernels=None``.
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
        targets: np.ndarray | None = None,
    ) -> TrainingKernels:
        """Compute or check the kernels of `rows`; widths are learnt with these sample weights.

        `targets` are for kernels that learn from them, which are refused without.
        """
        stack, source = rows.data.compute(
            sample_weight, shift_invariant, solver, rows.on_demand, targets
        )
        if rows.given_groups is not None and isinstance(stack, KernelStack):
            stack = stack._changed(groups=rows.groups)  # for transforms that hold samples out
        by_default = isinstance(rows.data, TrainingTable) and rows.data.kernels is None
        return cls(stack, source, shift_invariant, rows.data.missing, by_default)

    def select(self, kernels: np.ndarray) -> TrainingKernels:
        """Return some of the kernels, as if only these had been passed."""
        return replace(self, stack=self.stack.select(kernels), source=self.source.select(kernels))

    def refuse_lacking(self, kernel_sets: Mapping[str, np.ndarray]) -> None:
        """Raise if a sample has none of the kernels of a set."""
        if self.missing == "error":
            return
        present = ~np.isnan(self.stack.row_diag)
        for name, kernels in kernel_sets.items():
            names = [self.stack.names[j] for j in kernels]
            with naming(f"kernel_sets[{name!r}]"):
                refuse_samples_without_kernels(present[kernels], names, self.stack.row_samples)

    def preparation(self, normalize: str | None, *, center: bool = True) -> Chain:
        """The transform of these kernels, not yet fitted; it begins with their completion."""
        return preparation_with(self.missing, normalize, center=center)

    def samples(self, rows: TrainingRows) -> Samples:
        """Return these kernels with the targets and weights of the rows."""
        targets = rows.targets if rows.classes is None else rows.labels
        return Samples(self.stack, targets, rows.classes, rows.weights, rows.counts, rows.groups)

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
            self.stack.on_first_pass(lambda: self._warn_of_constants(transform))
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
    """Return the `kernels` whose view, in their names "view:kernel", has no other kernels."""
    views = np.array([name.rpartition(":")[0] for name in names])
    return kernels[~np.isin(views[kernels], np.delete(views, kernels))]


@dataclass(frozen=True)
class KernelsOfTargets:
    """Kernels that learn from targets, which every split learns anew from its training rows.

    `union` has these kernels, and `positions` are theirs among all kernels; `table`, `targets`
    and `weights` are those of all training rows.
    """

    union: KernelUnion
    positions: np.ndarray
    table: Any
    targets: np.ndarray
    weights: np.ndarray | None

    @classmethod
    def of(
        cls, rows: TrainingRows, source: Source, weights: np.ndarray | None
    ) -> KernelsOfTargets | None:
        """Return the kernels of a fitted source that learn from targets; None without any."""
        if not isinstance(source, TableSource):
            return None
        positions, targets = source.union.learning_from_targets(), rows.kernel_targets
        if not len(positions) or targets is None:
            return None
        return cls(source.union.subset(positions), positions, source.table, targets, weights)

    def select(self, kernels: np.ndarray) -> KernelsOfTargets | None:
        """Return those among some of all kernels; None if there are none."""
        kept, places = np.nonzero(self.positions[:, None] == kernels)
        if not len(kept):
            return None
        return replace(self, union=self.union.subset(kept), positions=places)

    def split(
        self, samples: Samples, train: np.ndarray, test: np.ndarray
    ) -> tuple[Samples, Samples]:
        """Return training and test samples as :meth:`Samples.split`, with kernels of `train`."""
        weights = None if self.weights is None else self.weights[train]
        table = safe_indexing(self.table, train)
        union = KernelUnion(self.union.kernels).fit(table, self.targets[train], weights)
        learning, tested = samples.split(train, test)
        block = union(safe_indexing(self.table, test), table)
        return (
            replace(learning, stack=learning.stack._with_kernels(self.positions, union(table))),
            replace(tested, stack=tested.stack._with_kernels(self.positions, block)),
        )


@storable
@dataclass(frozen=True)
class KernelPredictor:
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
    ) -> KernelPredictor:
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
        self, estimator: KernelEstimator, X: Table, coefficients: np.ndarray | None = None
    ) -> np.ndarray:
        """``Σ_j β_j K_j(X, training samples) @ coefficients``, (n_rows, n_outputs).

        Other coefficients than those of the fit give other functions of X.
        """
        return self.outputs_of(self.source.read(estimator, X), coefficients)

    def outputs_of(self, data: Any, coefficients: np.ndarray | None = None) -> np.ndarray:
        """Return the outputs, as :meth:`outputs`, for data that the source has already read."""
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
                outputs[rows] = 0.0
                for kernel, weights in zip(
                    np.eye(self.weights.shape[1]), self.weights.T, strict=True
                ):
                    # Targets take few of the kernels, if each has the best of many weights.
                    used = np.flatnonzero(weights)
                    columns = weights[used] * coefficients[:, used]
                    outputs[rows, used] += block.apply_combined(kernel, columns)
        return outputs

    def restricted(self, kernels: np.ndarray) -> KernelPredictor:
        """Return the part of the outputs that some of the kernels `inputs` contribute."""
        return replace(self, weights=np.where(kernels, self.weights, 0.0))

    def kernels_by_view(self) -> dict[str, np.ndarray]:
        """Return a mask of the kernels `inputs` for each view; without views, for each kernel.

        A kernel of several views, such as a product, counts for all of them together.
        """
        names = [self.source.names[j] for j in self.inputs]
        if isinstance(self.source, TableSource) and isinstance(self.source.table, Views):
            kernels = [self.source.union.kernels_[j][1] for j in self.inputs]
            names = [", ".join(sorted(views_of(kernel))) for kernel in kernels]
        return {name: np.array(names) == name for name in names}

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.coefficients.shape[-1])

    def kernel_factors(self) -> np.ndarray:
        """Return factors of the kernels `inputs` in the combined kernel, (n_outputs, n_inputs).

        The kernels are those before centring and normalisation.
        """
        factors = np.broadcast_to(self.weights, (self.n_outputs, len(self.inputs))).copy()
        for step in self.transform.steps:
            factors *= getattr(step, "scale_", 1.0)
        return factors

    def expansion(self) -> np.ndarray:
        """Return coefficients of the kernels `inputs` before centring and normalisation.

        Outputs are ``Σ_j K_j(x, ·) @ expansion[j]`` and a constant; the array has the shape
        (n_inputs, n_samples, n_outputs). Raises an AttributeError if kernels are transformed in
        another way, such as by spherical normalisation.
        """
        if self.weights.shape[-1] != len(self.inputs):
            raise AttributeError("its kernels have different weights in different regions.")
        weights = np.broadcast_to(self.weights, (self.n_outputs, len(self.inputs)))
        return self.transform.pulled_back(weights.T[:, None] * self.coefficients)

    def column_coefficients(self) -> dict[str, np.ndarray]:
        """Return the coefficients of the columns of linear views, (n_outputs, n_columns) each.

        The key of a single table is "". Views with another kernel are left out.
        """
        if not isinstance(self.source, TableSource):
            raise AttributeError("it was fitted to kernel matrices, which have no columns.")
        table, kernels = self.source.table, self.source.union.kernels_
        several = isinstance(table, Views)
        names = table.names if several else [""]
        coefficients = {
            name: np.zeros((self.n_outputs, (table[name] if several else table).shape[1]))
            for name in names
            if len((table[name] if several else table).shape) == 2
        }
        first = safe_indexing(table, [0])
        for j, expansion in zip(self.inputs, self.expansion(), strict=True):
            name, kernel = kernels[j]
            used = (views_of(kernel) if several else set()) or {""}
            if form_of(kernel) != "linear" or len(used) > 1:
                for view in used:
                    coefficients.pop(view, None)
                reason = f"kernel {name!r} is not linear in the columns"
                continue
            (view,) = used
            if view in coefficients:
                for k, column in enumerate(expansion.T):
                    coefficients[view][k] += slopes(kernel, first, table, column[None])[0]
        if not coefficients:
            raise AttributeError(f"{reason}: column_importance measures its columns.")
        return coefficients

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


# -- Training data of a square loss: prepared kernels, and targets in common units ----------------


@dataclass(frozen=True)
class ScaledTargets:
    """Columns of targets (m, q) of mean zero and variance one, and the way back.

    A target is ``units * column + means``. Constant targets have columns of zeros. In these units
    targets that share kernel weights count alike, and predictions do not depend on the unit.
    """

    columns: np.ndarray
    means: np.ndarray
    units: np.ndarray

    @classmethod
    def of(cls, targets: np.ndarray, weights: np.ndarray | None) -> Self:
        """Scale targets (m, q), given the weights of the samples."""
        # In units of about the largest one, so that no sum overflows: powers of two, which make
        # no rounding errors.
        largest = np.exp2(np.frexp(np.abs(targets).max(axis=0))[1].astype(np.float64) - 1.0)
        targets = targets / largest
        means = np.average(targets, axis=0, weights=weights)
        columns = targets - means
        # The mean of numbers far from zero has a rounding error.
        rest = np.average(columns, axis=0, weights=weights)
        columns, means = columns - rest, means + rest
        units = np.sqrt(np.average(columns**2, axis=0, weights=weights))
        constant = units <= ROUNDING
        columns[:, constant], units[constant] = 0.0, 1.0
        return cls(columns / units, largest * means, largest * units)

    def coding(self, group: np.ndarray) -> np.ndarray:
        """Return the scaled targets of a group, as :meth:`KernelData.loss_at` takes them."""
        return self.columns[:, group]

    at_samples = coding

    def rounding(self, residuals: np.ndarray) -> float:
        """Return the rounding error of the objective due to that of stored predictions.

        `residuals` (q,) are sums of the absolute residuals of every target, in its units.
        """
        return targets_rounding(self.means, self.units, residuals)

    def restored(self, outputs: np.ndarray, targets: Any = slice(None)) -> np.ndarray:
        """Return predictions of some of the targets from outputs of a regression."""
        predictions: np.ndarray = outputs * self.units[targets] + self.means[targets]
        return predictions


def targets_rounding(means: np.ndarray, units: np.ndarray, residuals: np.ndarray) -> float:
    """Return the change of ``Σ_i (y_i − f(x_i))²`` by rounding of predictions far from zero."""
    return float(EPS * ((np.abs(means) / units + 1.0) @ residuals))


@dataclass(frozen=True)
class KernelData:
    """Centred and normalised kernels of training samples, for regressions on their targets.

    `samples` have the kernels before `transform`, `stack` are the kernels after it. `attributes`
    are fitted attributes that describe the data. `source` gives kernels of new rows; None within
    a split.

    Data of one of several labels are `of_label`. If the label has sample weights of its own,
    `center` has centred `stack` with these.
    """

    samples: Samples
    transform: Chain
    stack: Any
    source: Source | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    of_label: bool = False
    center: Center | None = None

    #: Fitted attribute with the coefficients.
    coefficients: ClassVar[str] = "dual_coef_"

    @classmethod
    def of(
        cls, samples: Samples, transform: Chain, source: Source | None = None, **attributes: Any
    ) -> Self:
        """Prepare the kernels of training samples by `transform`, which is fitted here."""
        labels = None if samples.classes is None else samples.labels
        stack = transform.fit_transform(samples.stack, labels, samples.common_weights)
        return cls(samples, transform, stack, source, attributes)

    def label(self, k: int) -> KernelData:
        """Return the data of one of several labels; the kernels are those of all labels."""
        samples, stack, center = self.samples.label(k), self.stack, None
        if samples.weights is not self.samples.common_weights:
            center = Center()
            stack = center.fit_transform(stack, sample_weight=samples.weights)
        return replace(self, samples=samples, stack=stack, of_label=True, center=center)

    def shift(self, weights: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return what `center` takes away from the outputs of all samples, (n_outputs,).

        The columns of coefficients sum to zero, so that it is the same for all samples.
        """
        if self.center is None:
            return np.zeros(coefficients.shape[1])
        return centring_shift(self.center, weights, coefficients)

    @property
    def names(self) -> list[str]:
        """Names of the prepared kernels."""
        return self.stack.names

    @property
    def n_regions(self) -> int:
        """Number of regions with weights of their own."""
        return self.stack.n_regions

    @property
    def knows_targets(self) -> bool:
        """Whether some kernels have learnt from the targets of all samples."""
        union = getattr(self.source, "union", None)
        return union is not None and len(union.learning_from_targets()) > 0

    @property
    def masses(self) -> np.ndarray:
        """Total weight of each class."""
        return self.samples.masses

    @property
    def unit(self) -> float:
        """Factor of the Fisher targets: those of several labels have variance one."""
        return float(np.sqrt(self.masses.prod())) if self.of_label else 1.0

    def fisher_coding(self) -> np.ndarray:
        """Return the Fisher targets times `unit`, as :meth:`loss_at` takes them."""
        return self.unit * fisher_targets(self.samples.labels, self.masses)

    def scaled_targets(self) -> ScaledTargets:
        """Return the targets of a regression in common units."""
        targets = self.samples.targets
        return ScaledTargets.of(targets.reshape(len(targets), -1), self.samples.counts)

    def loss_at(self, coding: np.ndarray) -> Callable[[float], SquareLoss]:
        """Return the regression of targets as a function of λ."""
        weights = self.samples.weights
        return lambda reg: SquareLoss(self.stack, coding, reg, weights)

    def left_out(self, evaluation: Any, targets: np.ndarray, *, respond: bool = True) -> LeavesOut:
        """Return the regression as one whose samples can be left out."""
        leaves_out: LeavesOut = evaluation
        return leaves_out

    def residual_sums(self, evaluations: Sequence[Any]) -> np.ndarray:
        """Return sums of the absolute residuals of every target."""
        residuals = np.hstack([evaluation.residuals for evaluation in evaluations])
        sums: np.ndarray = np.abs(residuals).sum(axis=0)
        return sums

    def predictor(self, weights: np.ndarray, coefficients: np.ndarray) -> KernelPredictor:
        """Return what computes the outputs of new rows."""
        assert self.source is not None
        return KernelPredictor.of(self.source, self.transform, self.stack, weights, coefficients)


def centring_shift(center: Center, weights: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return the difference of outputs before and after centring, (n_outputs,).

    For coefficients v with ``Σ_l v_l = 0`` and the offsets o_j of centring,
    ``Σ_l v_l (K_j(r, l) − o_j(r) − o_j(l)) = Σ_l v_l K_j(r, l) − o_j·v``.
    """
    used = np.flatnonzero(weights)
    shift: np.ndarray = weights[used] @ (center.select(used).offsets_ @ coefficients)
    return shift


@dataclass(frozen=True)
class KernelPart:
    """Training part of a split, and its test samples: their kernels, or folds to leave out."""

    data: KernelData
    block: Any
    folds: list[np.ndarray] | None
    n_test: int

    @classmethod
    def of(cls, data: KernelData, test: Samples | list[np.ndarray]) -> Self:
        """Prepare the kernels of the test samples as those of `data`."""
        if isinstance(test, Samples):
            return cls(data, data.transform.transform(test.stack), None, len(test))
        return cls(data, None, test, sum(map(len, test)))

    def label(self, k: int) -> KernelPart:
        """Return the part of one of several labels."""
        data, block = self.data.label(k), self.block
        if data.center is not None and block is not None:
            block = data.center.transform(block)
        return replace(self, data=data, block=block)

    def outputs(self, evaluation: Any, coefficients: np.ndarray) -> np.ndarray:
        """Return outputs of the test samples."""
        outputs: np.ndarray = self.block.apply_combined(evaluation.weights, coefficients)
        return outputs

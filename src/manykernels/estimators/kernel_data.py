"""Kernels of the training rows, learning of kernel weights, and predictors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches

from ..discriminant import Samples, fisher_targets
from ..domains import Domain, Simplex, lp_domain, product_domain
from ..kernels import KernelStack, KernelUnion, Views
from ..kernels.completion import preparation_with, refuse_samples_without_kernels
from ..kernels.composition import views_of
from ..kernels.on_demand import RegionalKernels, StreamedKernels
from ..kernels.slopes import form_of, slopes
from ..kernels.tables import Table, naming
from ..kernels.transforms import Center, Chain
from ..losses.base import Certificate, Indices, Loss, ProblemSpec
from ..losses.features import FeatureEvaluation, FeatureLoss
from ..losses.inexact import EXACT_ROWS
from ..losses.left_out import LeavesOut
from ..losses.square import SquareLoss
from ..solvers import SOLVERS
from ..solvers.base import (
    DEFAULT_SOLVER,
    Problem,
    Progress,
    Solution,
    Solver,
    as_solver,
    refuse_indefinite,
    refuse_unfit,
)
from ..solvers.evidence import Evidence
from ..utils.files import GIB
from ..utils.numerics import ACCUMULATED, EPS, ROUNDING, TINY, available_memory
from ..utils.sklearn import Interval, StrOptions, num_samples, safe_indexing, warn_caller
from ..utils.storable import storable
from .base import FitTask, KernelEstimator, estimator
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


# -- Learning kernel weights: parameters, domain, solver, certificate, warning --------------------


# Kernels that take more of the available memory are computed when they are needed: the rest is for
# what solvers make of them, and for other programs.
_SHARE_OF_MEMORY = 0.5


@estimator()
class WeightParameters:
    """Parameters and attributes of estimators that learn one weight per kernel.

    Parameters
    ----------
    p : float in [1, inf], default=2.0
        Norm of the weights: 1 gives the fewest kernels, inf the plain sum.
    solver : str or a solver object, default="newton"
        "newton" is the one to use. Others, of the papers, are in :mod:`manykernels.solvers`, where
        there are objects with options, too, such as ``SIP(eps=1e-4)``.
    tol : float, default=1e-4
        Relative duality gap at which the weights are good enough.
    max_iter : int, optional
        Most outer iterations; by default the solver's own limit.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Learnt kernel weights, of the normalised kernels.
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``rel_gap`` and ``converged``, computed from the kernels and
        the model after the last step; ``rel_rounding`` is the rounding error of the gap,
        ``status`` and ``message`` say the same in words, and ``dual_point`` is the proof.
    n_iter_ : int
        Outer iterations.
    n_inner_solves_ : int
        How often the problem with given weights was solved, the unit of cost: a factorisation of a
        matrix of all training rows for the square loss, else a support vector machine.
    solver_ : str
    history_ : dict of list
        ``objective``, ``rel_gap`` and ``n_inner_solves`` at each iteration; where classes
        have weights of their own, also ``machine``, the number of the class.
    """

    p: float = 2.0
    solver: Any = DEFAULT_SOLVER
    max_iter: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "p": [Interval(Real, 1, None, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    }


#: The value of `p` that asks for the weights and λ of largest evidence. Grids hold NaN instead.
EVIDENCE = "evidence"
#: Constraint of a parameter p that may be "evidence".
NORM_OR_EVIDENCE = [Interval(Real, 1, None, closed="both"), StrOptions({EVIDENCE})]


def as_norm(p: float | str) -> float:
    """Return p as a number, NaN for "evidence"."""
    return np.nan if p == EVIDENCE else float(p)


def distinct_rows(loss: Any) -> Any:
    """Return a copy of the loss whose equal rows with equal targets are one row.

    Of features only sums are known, in which such rows are one already: only their number changes.
    """
    if isinstance(loss, FeatureLoss) and loss.sums.n_distinct is not None:
        distinct = copy(loss)
        distinct.sums = replace(loss.sums, n_samples=loss.sums.n_distinct())
        return distinct
    if not isinstance(loss, SquareLoss) or not isinstance(loss.kernels, KernelStack):
        return copy(loss)
    first = _first_equals(loss)
    kept, place = np.unique(first, return_inverse=True)
    if len(kept) == len(first):
        return copy(loss)
    weights = np.bincount(place, weights=loss.sample_weight, minlength=len(kept)).astype(float)
    kernels = Center().fit_transform(loss.kernels[np.ix_(kept, kept)], sample_weight=weights)
    targets = loss.targets[kept] - np.average(loss.targets[kept], axis=0, weights=weights)
    return SquareLoss(kernels, targets, loss.reg, weights)


def _first_equals(loss: SquareLoss) -> Indices:
    """Return the first row that is equal to each row, in all kernels and targets."""
    n_rows = len(loss.targets)
    first = np.arange(n_rows)
    # Rows of equal targets are compared, in the sum of all kernels.
    alike = np.unique(loss.targets, axis=0, return_inverse=True)[1].ravel()
    matrix = loss.kernels.combine(np.ones(loss.kernels.shape[2]))
    sizes = np.diagonal(matrix)
    allowed = 10.0 * ACCUMULATED * max(float(sizes.mean()), TINY)
    for value in np.flatnonzero(np.bincount(alike) > 1):
        rows = np.flatnonzero(alike == value)
        block = sizes[rows, None] + sizes[rows] - 2.0 * matrix[np.ix_(rows, rows)]
        first[rows] = rows[np.argmax(block <= allowed, axis=1)]
    return first


@dataclass(frozen=True)
class WeightLearning:
    """Domain, solver and tolerances with which an estimator learns kernel weights."""

    estimator: str
    domain: Domain
    solver: Solver
    tol: float
    max_iter: int

    @classmethod
    def of(cls, estimator: KernelEstimator) -> WeightLearning:
        """From the parameters p, solver, tol and max_iter."""
        return cls.at(estimator, as_norm(estimator.p), estimator.solver, estimator.max_iter)

    @classmethod
    def at(
        cls,
        estimator: KernelEstimator,
        p: float,
        solver: Any = DEFAULT_SOLVER,
        max_iter: int | None = None,
    ) -> WeightLearning:
        """With the norm p, NaN for "evidence", to the accuracy `tol` of an estimator."""
        chosen, domain = as_solver(solver), lp_domain(1.0 if np.isnan(p) else p)
        if np.isnan(p):
            if not isinstance(chosen, SOLVERS[DEFAULT_SOLVER]):
                raise ValueError(
                    f'solver={chosen.name!r} does not go with p="evidence", which has a solver of '
                    f"its own: leave solver={DEFAULT_SOLVER!r}."
                )
            chosen = Evidence(distinct_rows)
        if max_iter is None:
            max_iter = chosen.default_max_iter
        return cls(type(estimator).__name__, domain, chosen, estimator.tol, max_iter)

    @property
    def response(self) -> Domain | None:
        """The domain within which weights respond to left-out samples; None if they are held."""
        return None if isinstance(self.solver, Evidence) else self.domain

    def by_region(self, n_regions: int) -> WeightLearning:
        """Return a copy that learns weights for every region, each in the domain of this one."""
        return replace(self, domain=product_domain(self.domain, n_regions))

    def refuse_unfit(self, spec: ProblemSpec) -> None:
        """Raise if the solver does not take such a loss, before kernels are computed."""
        refuse_unfit(self.solver, Problem(spec, self.domain, self.tol))

    def place_kernels(self, rows: TrainingRows, spec: ProblemSpec) -> TrainingRows:
        """`rows`, with their kernels on demand where these are too many for the memory there is.

        Raises as :meth:`refuse_unfit` does.
        """
        on_demand = self._on_demand(rows.data, spec)
        self.refuse_unfit(replace(spec, on_demand=on_demand))
        several = rows.given_groups is not None and len(np.unique(rows.groups)) < len(rows)
        if several and self.solver.by_columns and len(rows) > EXACT_ROWS:
            raise ValueError(
                f"solver={self.solver.name!r} does not go with groups of more than {EXACT_ROWS} "
                f"rows (there are {len(rows)}): without a factorisation only single rows can be "
                "left out. Pass solver='newton', or an approximation such as Nystrom()."
            )
        return replace(rows, on_demand=True) if on_demand else rows

    def _on_demand(self, data: Any, spec: ProblemSpec) -> bool:
        """Whether kernels are computed when they are needed: as the solver says, or by memory."""
        asked = self.solver.on_demand
        if not isinstance(data, TrainingTable) or asked is False:
            return False
        if asked is not None:
            return asked
        needed, available = 8 * spec.n_kernels * spec.n_samples**2, available_memory()
        if available is None or needed <= _SHARE_OF_MEMORY * available:
            return False
        sizes = (
            f"{spec.n_kernels} kernels of {spec.n_samples} samples take {needed / GIB:.1f} "
            f"GiB, and {available / GIB:.1f} GiB are available"
        )
        if isinstance(self.domain, Simplex):
            warn_caller(
                f"{sizes}: they are computed when they are needed, anew in each iteration. "
                "solver=Newton(on_demand=True) does so without this warning.",
                UserWarning,
            )
            return True
        if needed > available:
            raise MemoryError(
                f"{sizes}. Kernels can be computed when they are needed at p=1, where few of them "
                "have a weight. Pass p=1, or fewer kernels or samples; learn from landmarks, with "
                'approximation="nystrom" of MKFDA or MKRidge; or keep the kernels on disk: '
                'X = kernels_for(X, kernels).fit(X)(X, memmap="stack.npy") with '
                'kernels="precomputed".'
            )
        return False

    def learn(self, losses: Sequence[Loss], names: list[str], task: FitTask) -> Learnt:
        """Solve for the weights, and warn if the relative gap `tol` was not reached."""
        learnt = self.solve(losses, names, task)
        learnt.warn_unless_converged()
        return learnt

    def solve(self, losses: Sequence[Loss], names: list[str], task: FitTask) -> Learnt:
        """Solve for the weights of kernels with these names, one loss after the other."""
        return solve_each([self] * len(losses), losses, names, task)


class LearntWeights(Protocol):
    """Kernel weights of one or several losses, and the models there."""

    @property
    def weights(self) -> np.ndarray:
        """(n_losses, n_kernels)."""

    @property
    def evaluations(self) -> list[Any]:
        """The loss of each at its weights."""

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes for users."""

    def warn_unless_converged(self) -> None:
        """Warn if the relative gap `tol` was not reached."""


@dataclass(frozen=True)
class Learnt:
    """Solutions of independent losses, and the certificate of their sum."""

    learning: WeightLearning
    names: list[str]
    losses: list[Any]
    solutions: list[Solution]
    certificate: Certificate
    stopped: bool

    @property
    def weights(self) -> np.ndarray:
        """Kernel weights, (n_losses, n_kernels)."""
        pairs = zip(self.losses, self.solutions, strict=True)
        return np.array([loss.kernel_weights(solution.weights) for loss, solution in pairs])

    @property
    def regularizations(self) -> np.ndarray:
        """λ of every loss, given or learnt, (n_losses,)."""
        pairs = zip(self.losses, self.solutions, strict=True)
        return np.array([loss.regularization(solution.weights) for loss, solution in pairs])

    @property
    def evaluations(self) -> list[Any]:
        """Every loss at its weights."""
        return [solution.evaluation for solution in self.solutions]

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes for users."""
        weights = self.weights
        return {
            "kernel_names_": self.names,
            "weights_": weights if len(weights) > 1 else weights[0],
            "certificate_": self.certificate,
            **run_attributes(self.solutions),
            "solver_": self.learning.solver.name,
        }

    def with_rounding(self, more: float) -> Self:
        """Return a copy with `more` rounding error of the objective, beyond that of the losses."""
        certificate = replace(self.certificate, rounding=self.certificate.rounding + more)
        return replace(self, certificate=certificate)

    def warn_unless_converged(self) -> None:
        """Warn if the relative gap `tol` was not reached, and say what would help."""
        certificate, learning = self.certificate, self.learning
        if certificate.note:
            warn_caller(f"{learning.estimator}: {certificate.note}", UserWarning)
        if certificate.converged:
            return
        if certificate.status != "stopped":
            message = f"{learning.estimator} is {certificate.status}. {certificate.message}"
        else:
            remarks = "; ".join(filter(None, (one.status for one in self.solutions)))
            message = (
                f"{learning.estimator} stopped at relative gap {certificate.rel_gap:.2e} > "
                f"tol={learning.tol:g}{f' ({remarks})' if remarks else ''}; the weights are at "
                f"most that far from optimal. {self._way_out()}"
            )
        warn_caller(message, ConvergenceWarning)

    def _way_out(self) -> str:
        """Why the solver stopped, and what would take it further."""
        if self.stopped:
            return "A callback asked for it."
        limit, solver = self.learning.max_iter, self.learning.solver
        steps = [step.iteration for solution in self.solutions for step in solution.history]
        if max(steps, default=0) >= limit:
            cause, way = f"max_iter={limit} was reached", "raise max_iter or tol"
        else:
            cause, way = "No more progress was made, tol is less than can be had", "raise tol"
        if not isinstance(solver, SOLVERS[DEFAULT_SOLVER]):
            way += f", or use solver={DEFAULT_SOLVER!r}"
        return f"{cause}: {way}."


def solve_each(
    learnings: Sequence[WeightLearning], losses: Sequence[Loss], names: list[str], task: FitTask
) -> Learnt:
    """Solve as :meth:`WeightLearning.solve`, every loss over a domain of its own."""
    solutions = []
    for learning, loss in zip(learnings, losses, strict=True):
        solution = learning.solver.solve(
            loss, learning.domain, tol=learning.tol, max_iter=learning.max_iter, observer=task
        )
        refuse_indefinite(solution, learning.domain, loss, names)
        solutions.append(solution)
    certificate = joined_certificate(solutions, learnings[0].tol)
    rounding = sum(map(_rounding_of_outputs, learnings, losses, solutions))
    certificate = replace(certificate, rounding=certificate.rounding + rounding)
    return Learnt(learnings[0], names, list(losses), solutions, certificate, task.stopped)


def _rounding_of_outputs(learning: WeightLearning, loss: Loss, solution: Solution) -> float:
    """Return the change of the objective by rounding errors of what predictions compute again.

    These are explicit features, and shares of samples in regions.
    """
    evaluation: Any = solution.evaluation
    if isinstance(evaluation, FeatureEvaluation):
        return evaluation.feature_rounding(learning.domain.support)
    kernels = getattr(loss, "kernels", None)
    if isinstance(kernels, RegionalKernels):
        errors = kernels.output_errors(
            loss.kernel_weights(solution.weights), evaluation.coefficients
        )
        return float(np.sum(evaluation.reach * errors))
    return 0.0


class Run(Protocol):
    """Solver statistics of one of several independent problems, such as a :class:`Solution`."""

    @property
    def certificate(self) -> Certificate: ...

    @property
    def history(self) -> Sequence[Progress]: ...

    @property
    def n_iter(self) -> int: ...

    @property
    def n_inner_solves(self) -> int: ...


def run_attributes(runs: Sequence[Run]) -> dict[str, Any]:
    """Return fitted attributes that describe how independent problems were solved in turn."""
    # Inner solves are counted over all of them.
    before = np.cumsum([0, *(run.n_inner_solves for run in runs)]).tolist()
    steps = [(k, step) for k, run in enumerate(runs) for step in run.history]
    certificates = [step.certificate for _, step in steps]
    history: dict[str, list[Any]] = {
        "objective": [certificate.primal for certificate in certificates],
        "rel_gap": [certificate.rel_gap for certificate in certificates],
        "n_inner_solves": [before[k] + step.n_inner_solves for k, step in steps],
    }
    if len(runs) > 1:
        history["machine"] = [k for k, _ in steps]
    return {
        "n_iter_": sum(run.n_iter for run in runs),
        "n_inner_solves_": before[-1],
        "history_": history,
    }


def joined_certificate(solutions: Sequence[Run], tol: float) -> Certificate:
    """Certificate of the sum of independent problems: the sums of their bounds."""
    parts = [solution.certificate for solution in solutions]
    if len(parts) == 1:
        return parts[0]
    primal, dual = sum(part.primal for part in parts), sum(part.dual for part in parts)
    points = [part.dual_point for part in parts if part.dual_point is not None]
    point = np.hstack(points) if len(points) == len(parts) else None
    rounding = sum(part.rounding for part in parts)
    note = " ".join(dict.fromkeys(part.note for part in parts if part.note))
    return Certificate(primal, dual, primal - dual, tol, rounding, point, note)


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

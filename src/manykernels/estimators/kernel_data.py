"""Kernels of the training rows, learning of kernel weights, predictors and held-out outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches

from ..discriminant.problem import LabelledKernels
from ..domains import Domain, Simplex, lp_domain, product_domain
from ..gating.descent import HeldOutLosses
from ..kernels import KernelStack
from ..kernels.completion import preparation_with
from ..kernels.on_demand import RegionalKernels, StreamedKernels
from ..kernels.transforms import Chain
from ..losses.base import Certificate, Loss, ProblemSpec
from ..losses.features import FeatureEvaluation
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
from ..solvers.path import GridProgress, GridRecord, SolvedPoint, solved_in_all, weight_response
from ..utils.files import GIB
from ..utils.folds import Answers, HeldOutValueLosses, score_table, stratified_folds
from ..utils.numerics import EPS, ROUNDING, available_memory
from ..utils.sklearn import Interval, num_samples, warn_caller
from ..utils.storable import storable
from .base import FitTask, estimator
from .inputs import Source, TrainingRows


@dataclass(frozen=True)
class TargetedKernels:
    """Kernels of samples with the training samples, and the numbers to be predicted for them.

    Attributes
    ----------
    stack : KernelStack
        Square for training samples; (n, m) between n test samples and m training samples.
    targets : ndarray of shape (n,) or (n, n_targets)
    counts : ndarray of shape (n,) or None
        Sample weights; None for one each.
    groups : ndarray of shape (n,) or None
        Numbers of the groups of rows that are left out together; None if rows are left out one
        by one.
    """

    stack: KernelStack
    targets: np.ndarray
    counts: np.ndarray | None = None
    groups: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def split(
        self, train: np.ndarray, test: np.ndarray
    ) -> tuple[TargetedKernels, TargetedKernels]:
        """Training kernels of the samples `train`, and those of `test` with these."""
        parts = [self.of(rows, self.stack[np.ix_(rows, train)]) for rows in (train, test)]
        return parts[0], parts[1]

    def of(self, rows: np.ndarray, stack: KernelStack | None = None) -> TargetedKernels:
        """Some of the samples; the stack stays that of all samples if no other is given."""
        return TargetedKernels(
            self.stack if stack is None else stack,
            self.targets[rows],
            None if self.counts is None else self.counts[rows],
            None if self.groups is None else self.groups[rows],
        )

    def folds(self, n_folds: int) -> list[np.ndarray]:
        """Folds of the rows that hold whole groups."""
        groups = np.arange(len(self)) if self.groups is None else self.groups
        return stratified_folds(np.zeros(len(self), int), groups, n_folds, self.counts)


@dataclass(frozen=True)
class SplitOutputs:
    """Outputs of the models of one training part at test samples.

    `outputs` has the axes of the grid and then those of the outputs at one point, such as samples
    and classes; it is NaN at points that could not be solved.
    """

    outputs: np.ndarray
    record: GridRecord

    @classmethod
    def unsolved(cls, grid: tuple[int, ...], point: tuple[int, ...]) -> SplitOutputs:
        """Nothing solved yet; the shapes of the grid, and of the outputs at one point."""
        return cls(np.full((*grid, *point), np.nan), GridRecord.unsolved(grid))

    def note(
        self,
        at: tuple[int, ...],
        params: Mapping[str, float],
        outputs: np.ndarray,
        certificate: SolvedPoint,
        n_inner_solves: int,
    ) -> GridProgress:
        """Enter a solved point, and say so."""
        self.outputs[at] = outputs
        return self.record.note(at, params, certificate, n_inner_solves)


def by_row(
    tested: Sequence[np.ndarray | None], parts: Sequence[np.ndarray], n_rows: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Held-out values of every training row, NaN if it is never tested, and its split, or -1.

    ``parts[k]`` are the values of the rows ``tested[k]``. A row that several splits test has the
    values of the first. None if a validation set was tested instead.
    """
    if any(rows is None for rows in tested):
        return None
    values = np.full((n_rows, *parts[0].shape[1:]), np.nan)
    split_of_row = np.full(n_rows, -1)
    for k in reversed(range(len(parts))):
        values[tested[k]] = parts[k]
        split_of_row[tested[k]] = k
    return values, split_of_row


def joined(tests: Sequence[Any], name: str) -> np.ndarray | None:
    """`counts` or `groups` of several test parts, one part after the other; None for none."""
    parts = [getattr(test, name) for test in tests]
    return None if any(part is None for part in parts) else np.concatenate(parts)


@dataclass(frozen=True)
class HeldOutValues:
    """Predicted numbers of all splits: those of ``parts[k]`` belong to ``tests[k]``."""

    parts: list[SplitOutputs]
    tests: list[TargetedKernels]

    @property
    def records(self) -> list[GridRecord]:
        """How the models of every split were solved."""
        return [part.record for part in self.parts]

    def judged_at(self, at: tuple[int, ...]) -> HeldOutLosses:
        """Square errors of all samples, at one point of the grid."""
        outputs = np.concatenate([part.outputs[at] for part in self.parts])
        targets = np.concatenate([test.targets for test in self.tests])
        squares = (outputs - targets) ** 2
        counts, groups = joined(self.tests, "counts"), joined(self.tests, "groups")
        return HeldOutLosses(squares, squares, counts, groups)

    def judged_by(self, scorer: Callable[..., float]) -> np.ndarray:
        """Values of a scikit-learn scorer at every split and point, (n_splits, …)."""

        def judged(at: tuple[int, ...]) -> Iterator[Answers]:
            for part, test in zip(self.parts, self.tests, strict=True):
                yield HeldOutValueLosses(part.outputs[at]), test.targets, test.counts

        return score_table(solved_in_all(self.records), len(self.parts), judged, scorer)


# -- Kernels of the training rows, and sums of kernels between new rows and these -----------------


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
    """Those of some default kernels whose view has no others, by the names "view:kernel"."""
    views = np.array([name.rpartition(":")[0] for name in names])
    return kernels[~np.isin(views[kernels], np.delete(views, kernels))]


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


@dataclass(frozen=True)
class WeightLearning:
    """How an estimator, whose name is needed for messages, learns kernel weights."""

    estimator: str
    domain: Domain
    solver: Solver
    tol: float
    max_iter: int

    @classmethod
    def of(cls, estimator: Any) -> WeightLearning:
        """From the parameters p, solver, tol and max_iter."""
        return cls.at(estimator, estimator.p, estimator.solver, estimator.max_iter)

    @classmethod
    def at(
        cls, estimator: Any, p: float, solver: Any = DEFAULT_SOLVER, max_iter: int | None = None
    ) -> WeightLearning:
        """With the norm p, to the accuracy `tol` of an estimator."""
        chosen = as_solver(solver)
        if max_iter is None:
            max_iter = chosen.default_max_iter
        return cls(type(estimator).__name__, lp_domain(p), chosen, estimator.tol, max_iter)

    def by_region(self, n_regions: int) -> WeightLearning:
        """The same with weights for every region, each in the domain of the plain weights."""
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
        return replace(rows, data=rows.data.computed_on_demand()) if on_demand else rows

    def _on_demand(self, data: Any, spec: ProblemSpec) -> bool:
        """Whether kernels are computed when they are needed: as the solver says, or by memory."""
        asked = self.solver.on_demand
        if data.computed_on_demand() is data or asked is False:
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
                "have a weight. Pass p=1, or fewer kernels or samples, or keep the kernels on "
                'disk: X = kernels_for(X, kernels).fit(X)(X, memmap="stack.npy") with '
                'kernels="precomputed".'
            )
        return False

    def learn(self, losses: Sequence[Loss], names: list[str], task: FitTask) -> Learnt:
        """As :meth:`solve`, with a warning if the relative gap `tol` was not reached.

        Features, and shares of samples in regions, are computed again for predictions. What their
        rounding errors change counts as one of the objective.
        """
        learnt = self.solve(losses, names, task)
        for loss, weights, one in zip(losses, learnt.weights, learnt.evaluations, strict=True):
            kernels = getattr(loss, "kernels", None)
            if isinstance(kernels, RegionalKernels):
                errors = kernels.output_errors(weights, one.coefficients)
                learnt = learnt.with_rounding(float(np.sum(one.reach * errors)))
            elif isinstance(one, FeatureEvaluation):
                learnt = learnt.with_rounding(one.feature_rounding(self.domain.support))
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
        """The same, with a rounding error of the objective that the losses know nothing of."""
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
    """As :meth:`WeightLearning.solve` of one estimator, every loss over a domain of its own."""
    solutions = []
    for learning, loss in zip(learnings, losses, strict=True):
        solution = learning.solver.solve(
            loss, learning.domain, tol=learning.tol, max_iter=learning.max_iter, observer=task
        )
        refuse_indefinite(solution, learning.domain, loss, names)
        solutions.append(solution)
    certificate = joined_certificate(solutions, learnings[0].tol)
    return Learnt(learnings[0], names, list(losses), solutions, certificate, task.stopped)


class Run(Protocol):
    """What is told of one of several independent problems, such as a :class:`Solution`."""

    @property
    def certificate(self) -> Certificate: ...

    @property
    def history(self) -> Sequence[Progress]: ...

    @property
    def n_iter(self) -> int: ...

    @property
    def n_inner_solves(self) -> int: ...


def run_attributes(runs: Sequence[Run]) -> dict[str, Any]:
    """How independent problems were solved one after the other: fitted attributes for users."""
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


# -------------------------------------------------------------------------------------------------
# Ridge regression on weighted sums of kernels: targets in common units, losses, what is kept.
#
# Targets are centred and divided by their standard deviations. So each counts alike where
# several share their kernel weights, whatever its unit; and since the regression of one target
# is linear in it, none of its predictions change. Centred kernels and targets are what an
# intercept amounts to.


@dataclass(frozen=True)
class ScaledTargets:
    """Columns of targets (m, q) of mean zero and variance one, and the way back.

    A target is ``units * column + means``. Constant ones have columns of zeros.
    """

    columns: np.ndarray
    means: np.ndarray
    units: np.ndarray

    @classmethod
    def of(cls, targets: np.ndarray, weights: np.ndarray | None) -> Self:
        """From targets (m, q) and the weights of the samples."""
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

    def rounding(self, residuals: np.ndarray) -> float:
        """Rounding error of the objective by those of predictions, as they are stored.

        `residuals` (q,) are sums of the absolute residuals of every target, in its units.
        """
        return targets_rounding(self.means, self.units, residuals)

    def restored(self, outputs: np.ndarray, targets: Any = slice(None)) -> np.ndarray:
        """Predictions of some of the targets from outputs of a regression on their columns."""
        predictions: np.ndarray = outputs * self.units[targets] + self.means[targets]
        return predictions


def targets_rounding(means: np.ndarray, units: np.ndarray, residuals: np.ndarray) -> float:
    """What rounding of predictions far from zero changes in ``Σ_i (y_i − f(x_i))²``."""
    return float(EPS * ((np.abs(means) / units + 1.0) @ residuals))


@dataclass(frozen=True)
class RidgeProblem:
    """Regression of scaled targets on centred, normalised kernels."""

    stack: KernelStack
    targets: ScaledTargets
    counts: np.ndarray | None

    @classmethod
    def of(cls, samples: TargetedKernels, transform: Chain) -> Self:
        """From training samples; `transform`, fitted here, centres and normalises the kernels."""
        stack = transform.fit_transform(samples.stack, sample_weight=samples.counts)
        targets = samples.targets.reshape(len(samples), -1)
        return cls(stack, ScaledTargets.of(targets, samples.counts), samples.counts)

    def loss(self, reg: float, group: Any) -> SquareLoss:
        """The regression of a group of targets at λ = `reg`."""
        return SquareLoss(self.stack, self.targets.columns[:, group], reg, self.counts)

    def losses(self, regs: Sequence[float], groups: Sequence[Any]) -> list[SquareLoss]:
        """A loss for every group of targets, as a function of its kernel weights.

        Groups of equal size share one m × m matrix: an evaluation whose factor has been
        overwritten by that of another loss computes it again.
        """
        found = [self.loss(reg, group) for reg, group in zip(regs, groups, strict=True)]
        for loss in found[1:]:
            loss.workspace = found[0].workspace
        return found


def groups_of(targets: np.ndarray, multi_target: str) -> list[np.ndarray]:
    """Positions of the targets that share kernel weights; `targets` are (m,) or (m, q)."""
    every = np.arange(1 if targets.ndim == 1 else targets.shape[1])
    return [every] if multi_target == "shared" else np.split(every, len(every))


def learn_ridge(
    rows: TrainingRows,
    kernels: TrainingKernels,
    normalize: str | None,
    groups: Sequence[np.ndarray],
    learnings: Sequence[WeightLearning],
    regs: Sequence[float],
    task: FitTask,
) -> dict[str, Any]:
    """Fitted attributes: kernel weights of every group of targets, and their regressions."""
    transform = kernels.preparation(normalize)
    samples = kernels.targeted(rows)
    problem = RidgeProblem.of(samples, transform)
    kernels.warn_of_constants(transform)
    targets, names = problem.targets, problem.stack.names
    losses = problem.losses(regs, groups)
    learnt = solve_each(learnings, losses, names, task)
    evaluations: list[Any] = [solution.evaluation for solution in learnt.solutions]
    residuals = np.abs(np.hstack([one.residuals for one in evaluations])).sum(axis=0)
    learnt = learnt.with_rounding(targets.rounding(residuals))
    learnt.warn_unless_converged()
    dual_coef = targets.units * np.hstack([one.coefficients for one in evaluations])
    left_out = np.hstack(
        [
            _left_out(evaluation, learning.domain, rows.groups)
            for evaluation, learning in zip(evaluations, learnings, strict=True)
        ]
    )
    predictions = targets.restored(left_out)
    weights = learnt.weights if len(groups) > 1 else learnt.weights[0]
    predictor = KernelPredictor.of(kernels.source, transform, problem.stack, weights, dual_coef)
    single = rows.targets.ndim == 1
    return {
        **rows.attributes,
        **kernels.source.attributes,
        **learnt.attributes,
        "dual_coef_": dual_coef[:, 0] if single else dual_coef,
        "intercept_": targets.means,
        "left_out_predictions_": predictions[:, 0] if single else predictions,
        "_predictor": predictor,
    }


def _left_out(evaluation: Any, domain: Domain, groups: np.ndarray) -> np.ndarray:
    """Outputs of every sample by the regression of the others, (m, n_targets)."""
    if len(evaluation.residuals) == 1:
        return np.full(evaluation.residuals.shape, np.nan)
    response = weight_response(evaluation, domain)
    outputs: np.ndarray = evaluation.leave_one_out(groups, response=response)
    return outputs

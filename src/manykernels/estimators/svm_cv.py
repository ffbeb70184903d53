"""MKSVCCV and MKSVRCV: parameters of support vector machines chosen by cross-validation.

The grid is walked from large p, where all weights are alike, to small, and at one p from small C
to large. Kernel weights start from those of the C before, and from those that the gains at the p
before predict. The machines start from those of the same C at the p before.

Where the first parameters of the grid change the kernels themselves, such a walk begins anew with
the kernels of each of their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.parallel import Parallel, delayed

from ..discriminant import Samples
from ..domains import Domain, LpBall, lp_domain, product_domain
from ..kernels import KernelStack
from ..kernels.completion import preparation_with
from ..kernels.tables import Table
from ..kernels.transforms import Center, Chain
from ..losses.svm import BoxLoss, EpsilonInsensitiveLoss
from ..solvers import Newton
from ..solvers.base import Solution, refuse_indefinite
from ..solvers.path import GridProgress
from ..utils.sklearn import StrOptions
from ..utils.storable import storable
from .base import CLASS_WEIGHT, FitTask, estimator, fits
from .grid import MACHINE_NORMS, Grid, checked_non_negative, checked_norms, checked_positive
from .held_out import CalibrationAttributes, HeldOutDecisions, SplitOutputs
from .kernel_data import TrainingKernels
from .learning import Point, fit_model, target_groups
from .prediction import (
    IntervalRegressor,
    KernelClassifier,
    KernelRegressor,
    LabelParameters,
    LeftOutResiduals,
)
from .search import (
    ChoiceParameters,
    ChosenWeights,
    KernelSetParameters,
    Search,
    Split,
    chosen_for_labels,
    validation_curve,
)
from .svm import (
    INNER_SHARE,
    LOSSES,
    ClassMachines,
    SupportAttributes,
    SVCTask,
    SVRTask,
    refuse_single_machine,
)
from .training_rows import TrainingRows, spread_of_targets
from .weights import joined_certificate


class Machines(Protocol):
    """Makes the losses of the machines at a point; the outputs of one loss share its weights."""

    @property
    def n_outputs(self) -> int: ...

    def __call__(self, stack: KernelStack, params: dict[str, float]) -> list[BoxLoss]: ...


@dataclass(frozen=True)
class PreparedKernels:
    """Kernels of training samples, and those of test samples with them, as machines take them.

    Weights of their `n_regions` regions are bounded one by one. `places` are the positions in the
    first axes of the grid, before p, that have these kernels.
    """

    stack: Any
    block: Any
    n_regions: int = 1
    places: tuple[tuple[int, ...], ...] = ((),)

    @classmethod
    def centred(
        cls, stack: Any, block: Any, sample_weight: np.ndarray | None = None, **where: Any
    ) -> PreparedKernels:
        """From normalised kernels."""
        # As in MachineKernels; of test samples, too, so that biases need no correction.
        center = Center()
        centred = center.fit_transform(stack, sample_weight=sample_weight)
        return cls(centred, center.transform(block), **where)


class Preparation(Protocol):
    """Makes the kernels at all points of a grid; a transform, fitted here, normalises them."""

    def __call__(self, train: Any, test: Any, transform: Chain) -> Iterator[PreparedKernels]: ...


def same_kernels(train: Any, test: Any, transform: Chain) -> Iterator[PreparedKernels]:
    """The preparation of a grid that begins with p: one for all points."""
    stack = transform.fit_transform(train.stack, sample_weight=train.counts)
    yield PreparedKernels.centred(stack, transform.transform(test.stack))


@dataclass(frozen=True)
class KernelsOfSets:
    """The preparation of a grid that begins with sets of kernels: one for every set."""

    kernel_sets: dict[str, np.ndarray]

    def __call__(self, train: Any, test: Any, transform: Chain) -> Iterator[PreparedKernels]:
        for k, kernels in enumerate(self.kernel_sets.values()):
            for prepared in same_kernels(train.select(kernels), test.select(kernels), transform):
                yield replace(prepared, places=((k,),))


def held_out_outputs(
    search: Search,
    grid: Grid,
    machines_of: Callable[[Any], Machines],
    preparation: Preparation = same_kernels,
    purpose: str = "",
) -> list[SplitOutputs]:
    """Outputs at the test samples of every split, by the machines of its training samples.

    The estimator has the parameters missing, normalize, tol and n_jobs. Progress is reported with
    the `purpose`.
    """
    estimator, splits = search.estimator, search.splits
    if grid.kernel_sets:
        preparation = KernelsOfSets(grid.kernel_sets)
    # The kernels of a single split are not copied to another process.
    parallel = Parallel(n_jobs=None if len(splits) == 1 else estimator.n_jobs)
    outputs: list[SplitOutputs] = parallel(
        delayed(_outputs_of_split)(
            split,
            preparation_with(estimator.missing, estimator.normalize, center=False),
            preparation,
            grid,
            machines_of,
            estimator.tol,
            search.task.part(f"{purpose}split {k + 1}/{len(splits)}", grid.size),
        )
        for k, split in enumerate(splits)
    )
    return outputs


def _outputs_of_split(
    split: Split,
    transform: Chain,
    preparation: Preparation,
    grid: Grid,
    machines_of: Callable[[Any], Machines],
    tol: float,
    task: FitTask,
) -> SplitOutputs:
    train, test = split.parts()
    path = MachinePath(grid, machines_of(train), tol, task)
    outputs = path.outputs(preparation(train, test, transform), len(test.stack))
    task.end()
    return outputs


@dataclass(frozen=True)
class MachinePath:
    """Machines of one training part on a grid of p and other parameters.

    What comes before p in the grid changes the kernels. `tol` is the relative gap of every point.
    The observer is called at every solved point; if it returns a true value, the remaining points
    are not solved.
    """

    grid: Grid
    machines: Machines
    tol: float
    observer: Callable[[GridProgress], bool | None] | None = None

    def outputs(self, prepared: Iterable[PreparedKernels], n_test: int) -> SplitOutputs:
        """Outputs of all machines at `n_test` samples, (…, n_test, n_outputs)."""
        found = SplitOutputs.unsolved(self.grid.shape, (n_test, self.machines.n_outputs))
        for kernels in prepared:
            if self._walk(kernels, found):
                break
        return found

    def _walk(self, kernels: PreparedKernels, found: SplitOutputs) -> bool:
        """Solve the points that have these kernels; whether the observer asks to stop."""
        stack = kernels.stack
        names = list(self.grid.values)
        norms, *others = list(self.grid.values.values())[names.index("p") :]
        losses: dict[tuple[int, ...], list[BoxLoss]] = {}
        # Gains and weights of all losses at the p before.
        solved: dict[tuple[int, ...], list[tuple[np.ndarray, np.ndarray]]] = {}
        for i in np.argsort(norms)[::-1].tolist():
            domain = product_domain(lp_domain(float(norms[i])), kernels.n_regions)
            solved_here: dict[tuple[int, ...], list[tuple[np.ndarray, np.ndarray]]] = {}
            near: list[np.ndarray] | None = None
            for rest in product(*(np.argsort(values).tolist() for values in others)):
                places = [(*place, i, *rest) for place in kernels.places]
                if rest not in losses:
                    before = next(reversed(losses.values()), None)
                    losses[rest] = self.machines(stack, self.grid.at(places[0]))
                    for loss, last in zip(losses[rest], before or [], strict=False):
                        loss.continue_from(last)
                starts = _starts(solved.get(rest), near, domain)
                try:
                    solutions = self._solutions(losses[rest], domain, starts, stack.names)
                except ValueError as error:
                    found.record.failures.append(str(error))
                    continue
                near = [solution.weights for solution in solutions]
                solved_here[rest] = [
                    (solution.evaluation.gains, solution.weights) for solution in solutions
                ]
                if self._note(found, places, solutions, kernels.block):
                    return True
            solved = solved_here
        return False

    def _note(
        self,
        found: SplitOutputs,
        places: list[tuple[int, ...]],
        solutions: list[Solution],
        block: Any,
    ) -> bool:
        """Enter the same solutions at all places; whether the observer asks to stop."""
        outputs = outputs_of(solutions, block)
        certificate = joined_certificate(solutions, self.tol)
        n_solves = sum(solution.n_inner_solves for solution in solutions)
        for at in places:
            progress = found.note(at, self.grid.at(at), outputs, certificate, n_solves)
            if self.observer is not None and self.observer(progress):
                return True
        return False

    def _solutions(
        self,
        losses: list[BoxLoss],
        domain: Domain,
        starts: list[np.ndarray] | None,
        names: list[str],
    ) -> list[Solution]:
        """Kernel weights and machines of all losses of a point."""
        solutions = []
        for k, loss in enumerate(losses):
            start = None if starts is None else starts[k]
            solution = Newton().solve(loss, domain, tol=self.tol, start=start)
            refuse_indefinite(solution, domain, loss, names)
            solutions.append(solution)
        return solutions


def _starts(
    last: list[tuple[np.ndarray, np.ndarray]] | None,
    near: list[np.ndarray] | None,
    domain: Domain,
) -> list[np.ndarray] | None:
    """Return weights to start from: of the last C, and predicted from those at the last p.

    The mean of both is closer than either where all kernels have a weight. At p = 1 the gains do
    not determine the weights.
    """
    if last is None or (near is not None and not isinstance(domain, LpBall)):
        return near
    if isinstance(domain, LpBall) and all(gains.any() for gains, _ in last):
        predicted = [domain.maximizer(gains) for gains, _ in last]
    else:
        predicted = [domain.onto_boundary(weights) for _, weights in last]
    if near is None:
        return predicted
    pairs = zip(predicted, near, strict=True)
    return [domain.onto_boundary(weights + others) for weights, others in pairs]


def outputs_of(solutions: list[Solution], block: KernelStack) -> np.ndarray:
    """Outputs of machines at the rows of a block, (n_rows, n_outputs)."""
    evaluations: list[Any] = [solution.evaluation for solution in solutions]
    return np.hstack(
        [
            # A regression on centred kernels and targets has no bias.
            block.apply_combined(one.weights, one.coefficients) + getattr(one, "biases", 0.0)
            for one in evaluations
        ]
    )


# -- MKSVCCV: norm and penalty of support vector classification, chosen by cross-validation -------


# Norms and penalties. Measured against grids of 45 to 91 points on 15 data sets (tables, single
# columns, views): accuracy 0.1 % lower in the mean and 1.2 % at most, which is one standard error.
CLASSIFICATION_PENALTIES = (0.01, 0.1, 1.0, 10.0)
# Larger ones, each tried if the one before is the best so far. With kernels that separate all
# samples they change nothing; with others, such as those of categories, they take long.
LARGER_PENALTIES = (100.0, 1000.0)


@storable
@estimator(
    LabelParameters,
    CalibrationAttributes,
    SupportAttributes,
    ChoiceParameters,
    KernelSetParameters,
    ChosenWeights,
)
class MKSVCCV(KernelClassifier):
    """Multiple kernel support vector classification with p and C chosen by cross-validation.

    The models of a grid are solved as one path, each from its neighbours and each with a
    certificate. They are scored on samples that neither the kernel weights nor the machines have
    seen. The decision values of these samples, at the chosen point, also tell how to turn decision
    values into probabilities.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms to try; by default 1, 1.5 and inf.
    Cs : array-like of float, optional
        C to try; by default 0.01, 0.1, 1 and 10, which suit normalised kernels. Where the score at
        10 is higher than at all others, 100 is tried, too, and in the same way 1000.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        ``C Σ max(0, 1 − y f)`` or ``½ C Σ max(0, 1 − y f)²``.
    multi_class : {"shared", "separate", "single"}, default="shared"
        More than two classes are learnt one against the rest, with one weight vector for all
        classes or one for each; or by a single machine for all classes (hinge loss only), as for
        :class:`MKSVC`.
    cv : None, int, splitter, iterable of splits or (X_val, y_val), default=None
        A number of folds, by default five: shuffled with a fixed seed, with the classes in equal
        parts. Groups and repeated rows stay together, and a class of a single sample is in no test
        part. A pair is a
        validation set.
    scoring : str, callable or None, default=None
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is accuracy.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; "balanced" ones are those of each training part.

    Attributes
    ----------
    p_, C_ : float, or ndarray of shape (n_labels,)
        The point of the grid with the best score; of equal ones, with the smallest log loss. See
        `one_standard_error`.
    weights_ : ndarray of shape (n_kernels,), or (n_classes, n_kernels)
        Learnt kernel weights, those of the fit to all samples; a row for each class if separate.

    Notes
    -----
    Kernels are computed once, for all rows: what a kernel takes from the data, such as a width or
    the transformer of ``kernel.after``, is that of all training rows, in every fold. In every fold
    the scales of the kernels, their weights and the machines come from the training part.

    Two numbers make probabilities of the outputs of machines: a slope and an exponent of the class
    frequencies. They are those of least log loss on the held-out samples. ``predict`` takes the
    most probable class: offsets are added to the outputs such that it has the largest decision
    value. (Biases of machines suit their training samples. Where samples are few and columns are
    many, outputs at new samples differ little, and biases alone would decide for the largest
    class.) With a `class_weight` there are no offsets, because weights ask for other decisions
    than those of the most probable class.

    To find rare classes, weight them and judge accordingly: ``class_weight="balanced"`` with
    ``scoring="balanced_accuracy"``. Neither alone is enough, since accuracy favours the C at which
    rare samples are missed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKSVCCV(ps=[1, 2], Cs=[0.1, 1, 10]).fit(X, y)
    >>> model.validation_curve().shape
    (2, 3)
    >>> model.best_score_ > 0.95
    True
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    """

    ps: ArrayLike | None = None
    Cs: ArrayLike | None = None
    loss: str = "hinge"
    multi_class: str = "shared"
    class_weight: dict[Any, float] | str | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "Cs": ["array-like", None],
        "loss": [StrOptions(set(LOSSES))],
        "multi_class": [StrOptions({"shared", "separate", "single"})],
        "class_weight": CLASS_WEIGHT,
    }

    _probabilities = "calibrated"
    validation_curve = validation_curve

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose p and C, then learn from all samples.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or indicator matrix (n_samples, n_labels)
            Class labels of any kind, or 0 and 1 for each of several labels.
        """
        refuse_single_machine(self)
        grid = Grid(
            {
                "p": checked_norms(self.ps, MACHINE_NORMS),
                "C": checked_positive(self.Cs, CLASSIFICATION_PENALTIES, "Cs"),
            }
        )
        task = SVCSearchTask.of(self, None)
        if self.Cs is None:
            task = replace(task, larger=LARGER_PENALTIES)
        return fit_model(self, task, X, y, sample_weight, groups, grid)


@dataclass(frozen=True)
class SVCSearchTask(SVCTask):
    """Support vector classification with C chosen by cross-validation.

    The `larger` C are tried one after the other, as long as the largest so far is the best.
    """

    larger: tuple[float, ...] = ()

    def search(
        self, estimator: Any, X: Any, y: Any, rows: TrainingRows, kernels: TrainingKernels
    ) -> Search:
        samples = replace(kernels.samples(rows), weights=rows.counts)
        n_passes = 1 + len(self.larger)
        return Search.of(estimator, X, y, rows, kernels, samples, n_passes)

    def choose(self, search: Search, grid: Grid) -> tuple[list[Point], dict[str, Any]]:
        machines, axis = partial(ClassMachines.of, self), list(grid.values).index("C")
        outputs = held_out_outputs(search, grid, machines)
        chosen = self._chosen(search, grid, outputs)
        for C in self.larger:
            complete = all(part.record.converged.all() for part in outputs)
            if not complete or not _best_at_largest(chosen[1]["cv_results_"]):
                break
            more = replace(grid, values={**grid.values, "C": np.array([C])})
            added = held_out_outputs(search, more, machines, purpose=f"C = {C:g}, ")
            pairs = zip(outputs, added, strict=True)
            outputs = [part.followed_by(other, axis) for part, other in pairs]
            grid = replace(grid, values={**grid.values, "C": np.append(grid.values["C"], C)})
            chosen = self._chosen(search, grid, outputs)
        return chosen

    def _chosen(
        self, search: Search, grid: Grid, outputs: list[SplitOutputs]
    ) -> tuple[list[Point], dict[str, Any]]:
        """Return the best point for every loss, and fitted attributes of the choice."""
        samples = search.samples
        if samples.n_labels is None:
            choice, attributes = search.choose(grid, outputs)
            return [choice.params] * self.n_losses(samples.labels), attributes
        held_out = [
            HeldOutDecisions(
                [replace(part, outputs=part.outputs[..., [k]]) for part in outputs],
                [test.label(k) for test in search.tests],
                samples.label(k).frequencies,
                search.moves_outputs,
            )
            for k in range(samples.n_labels)
        ]
        groups = target_groups(samples.n_labels, self.multi_label)
        choices, attributes = chosen_for_labels(search, grid, held_out, groups)
        positions = np.repeat([choice.position for choice in choices], len(groups[0]), axis=0)
        attributes["calibration_"] = [
            label.calibration(tuple(at)) for label, at in zip(held_out, positions, strict=True)
        ]
        return [choice.params for choice in choices], attributes


def _best_at_largest(results: Any) -> bool:
    """Return True if the largest C has a higher score than all others, for one of the labels."""
    tables = results if isinstance(results, list) else [results]
    return any(
        scores[largest].max() > scores[~largest].max()
        for scores, largest in (
            (table["mean_test_score"], table["param_C"] == table["param_C"].max())
            for table in tables
        )
    )


# -- MKSVRCV: norm, penalty and ε of support vector regression, chosen by cross-validation --------


# Norms, and penalties and ε in units of the standard deviation of y. Measured against a grid of
# 162 points on six data sets (tables, single columns): R² 0.005 lower in the mean, 0.014 at most.
REGRESSION_PENALTIES = (0.1, 1.0, 10.0, 100.0)
DEFAULT_WIDTHS = (0.01, 0.1)


@storable
@estimator(SupportAttributes, ChoiceParameters, KernelSetParameters, ChosenWeights)
class MKSVRCV(IntervalRegressor, KernelRegressor):
    """Multiple kernel support vector regression with p, C and ε chosen by cross-validation.

    The models of a grid are solved as one path, each from its neighbours and each with a
    certificate. They are scored on samples that neither the kernel weights nor the machine have
    seen.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms to try; by default 1, 1.5 and inf.
    Cs : array-like of float, optional
        C to try; by default 0.1, 1, 10 and 100 times the standard deviation of y.
    epsilons : array-like of float, optional
        ε to try; by default 0.01 and 0.1 times the standard deviation of y. So the default grids
        do not depend on the unit of y; given numbers are taken as they are.
    scoring : str, callable or None, default=None
        As in :class:`~sklearn.model_selection.GridSearchCV`; None is R².

    Attributes
    ----------
    left_out_predictions_ : ndarray of shape (n_samples,)
        Prediction of each training row by the model without its fold, at the point that is best
        in the other folds: what `left_out_score_` is the score of. NaN in rows that no split
        tests. Not if `cv` is a validation set.
    p_, C_, epsilon_ : float
        The point of the grid with the best score, of equal ones the simplest; see
        `one_standard_error`.

    Notes
    -----
    Kernels are computed once, for all rows: what a kernel takes from the data, such as a width or
    the transformer of ``kernel.after``, is that of all training rows, in every fold. So is the
    standard deviation of y. In every fold the scales of the kernels, their weights and the machine
    come from the training part.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKSVRCV
    >>> from manykernels.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (100, 2))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=100)
    >>> kernels = [("first", RBF(1.0).on([0])), ("second", RBF(1.0).on([1]))]
    >>> model = MKSVRCV(kernels, ps=[1, 2]).fit(X, y)
    >>> bool(model.best_score_ > 0.9)
    True
    """

    ps: ArrayLike | None = None
    Cs: ArrayLike | None = None
    epsilons: ArrayLike | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "Cs": ["array-like", None],
        "epsilons": ["array-like", None],
    }

    validation_curve = validation_curve

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose p, C and ε, then learn from all samples."""
        task = SVRSearchTask(self.normalize, self.tol)
        return fit_model(self, task, X, y, sample_weight, groups, self._grid_of)

    def _grid_of(self, rows: TrainingRows) -> Grid:
        spread = spread_of_targets(rows)
        return Grid(
            {
                "p": checked_norms(self.ps, MACHINE_NORMS),
                "C": checked_positive(self.Cs, spread * np.array(REGRESSION_PENALTIES), "Cs"),
                "epsilon": checked_non_negative(
                    self.epsilons, spread * np.array(DEFAULT_WIDTHS), "epsilons"
                ),
            }
        )


class SVRSearchTask(SVRTask):
    """ε-insensitive regression with C and ε chosen by cross-validation."""

    def choose(self, search: Search, grid: Grid) -> tuple[list[Point], dict[str, Any]]:
        outputs = held_out_outputs(search, grid, partial(ValueMachines.of, self))
        choice, attributes = search.choose(grid, outputs)
        predictions = attributes.get("left_out_predictions_")
        residuals = LeftOutResiduals.attributes(search.samples, predictions)
        return [choice.params], {**attributes, **residuals}


@dataclass(frozen=True)
class ValueMachines:
    """The machine of one regression."""

    targets: np.ndarray
    counts: np.ndarray
    inner_tol: float

    n_outputs: ClassVar[int] = 1

    @classmethod
    def of(cls, estimator: Any, samples: Samples) -> ValueMachines:
        """The machine of training samples."""
        counts = np.ones(len(samples)) if samples.counts is None else samples.counts
        return cls(samples.targets, counts, INNER_SHARE * estimator.tol)

    def __call__(self, stack: KernelStack, params: dict[str, float]) -> list[BoxLoss]:
        """Its loss."""
        penalties, epsilon = params["C"] * self.counts, params["epsilon"]
        return [EpsilonInsensitiveLoss(stack, self.targets, penalties, epsilon, self.inner_tol)]

"""Kernels weighted by a gate: inputs of gates, parameters, predictors and grids of penalties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ..gating import KernelComponents
from ..gating.descent import (
    Block,
    Descent,
    Fold,
    GatedPath,
    GatedSamples,
    GateLearning,
    Judge,
    LearntGate,
    LearntGates,
    Restarts,
)
from ..gating.gates import Gate, as_gate
from ..gating.objective import Machine
from ..kernels import KernelStack, Views
from ..kernels.tables import Table
from ..kernels.transforms import Chain
from ..utils.folds import stratified_folds
from ..utils.sklearn import num_samples, safe_indexing
from ..utils.storable import storable
from .base import FitTask, estimator
from .grid import Grid, checked_gate_penalties
from .held_out import SplitOutputs
from .inputs import Source, by_blocks, parts_of
from .kernel_data import BLOCK_ENTRIES, KernelPredictor, TrainingKernels
from .search import Search, Split
from .svm import SupportVectors
from .training_rows import TrainingRows


@storable
@dataclass(frozen=True)
class TableReader:
    """Reader of the table of a gate from the rows of X.

    The table is X, the view `name`, or the values of the precomputed kernel `name` (an empirical
    kernel map) at those `columns` of test blocks that belong to training samples in use; None if
    all do.
    """

    name: str | None
    columns: np.ndarray | None

    def __call__(self, data: Any) -> Any:
        """Return the table of checked rows."""
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
                "that all samples have as features of the gate, such as "
                "gating=Sigmoid(features=<name of a view>), or use the default features, which "
                "are made from all kernels."
            )
        try:
            return chosen.joined()
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"The gate looks at numbers: {error}. Name a view of numbers as features of the "
                "gate: gating=Sigmoid(features=<name of a view>)."
            ) from error


@storable
@dataclass(frozen=True)
class ComponentReader:
    """Principal components of the mean kernel, see :class:`~manykernels.gating.KernelComponents`.

    `predictor` computes sums of the mean kernel with training samples.
    """

    predictor: KernelPredictor
    offsets: np.ndarray

    @classmethod
    def learn(
        cls,
        features: KernelComponents | None,
        kernels: TrainingKernels,
        transform: Chain,
        stack: Any,
        counts: np.ndarray | None,
    ) -> tuple[ComponentReader, np.ndarray]:
        """Return the reader of new rows, and the components of the training rows.

        `stack` are the `kernels` of the training rows, prepared by `transform`.
        """
        features = KernelComponents() if features is None else features
        learnt, weights = features.learn(stack, counts), features.weights(stack.n_kernels)
        predictor = KernelPredictor.of(
            kernels.source, transform, stack, weights, learnt.axes, learnt.rows
        )
        of_training = stack[:, learnt.rows].apply_combined(weights, learnt.axes) - learnt.offsets
        return cls(predictor, learnt.offsets), of_training

    def __call__(self, data: Any) -> np.ndarray:
        """Return the components of checked rows."""
        return self.predictor.outputs_of(data) - self.offsets


@storable
class NoTable:
    """Reader for gates that know rows by their number alone."""

    def __call__(self, data: Any) -> np.ndarray:
        """Return a table without columns."""
        return np.empty((num_samples(data), 0))


@storable
@dataclass(frozen=True)
class GateInput:
    """Input of the gate of a fitted model: a reader of tables, and a transformer of these."""

    features: Any
    reader: TableReader | ComponentReader | NoTable

    def transform(self, data: Any) -> Any:
        """Return the gating features of checked rows."""
        return self.features.transform(self.reader(data))


@dataclass(frozen=True)
class GateTable:
    """The table of the training rows from which the features of a gate are made.

    `features` are the parameter of the gate, or None for all columns. `refitted` features are
    learnt again when samples are held out: they may depend on the targets, or know training rows
    only.
    """

    rows: TrainingRows
    gate: Gate
    features: Any
    reader: TableReader | ComponentReader | NoTable
    table: Any
    refitted: bool

    @classmethod
    def of(cls, rows: TrainingRows, gate: Gate) -> GateTable | None:
        """Return the table for the features of the gate; None if they are made from kernels."""
        data, features = rows.data.X, gate.features
        if not gate.transformer(None).reads_table:
            return cls(rows, gate, None, NoTable(), NoTable()(data), refitted=True)
        has_table = isinstance(data, KernelStack) and data.features is not None
        if isinstance(features, KernelComponents) or (features is None and not has_table):
            return None
        named = isinstance(data, KernelStack | Views) and isinstance(features, str)
        if isinstance(data, KernelStack) and not named and not has_table:
            raise ValueError(
                'With kernels="precomputed" there are no columns for the features of the gate: '
                "pass stack.with_features(table), the name of a kernel of the stack, one of "
                f"{', '.join(data.names)}, or None, principal components of the kernels."
            )
        name = features if named else None
        is_pair = isinstance(features, tuple) and len(features) == 2
        refitted = hasattr(features[1] if is_pair else features, "fit")
        # Training matrices have columns for the samples in use only.
        table = TableReader(name, None)(data)
        reader = TableReader(name, rows.data.columns)
        return cls(rows, gate, None if named else features, reader, table, refitted)

    def learn(self) -> tuple[GateInput, Any]:
        """Return the input of the gate, and the features of the training rows."""
        rows, transformer = self.rows, self.gate.transformer(self.features)
        learnt = transformer.fit_transform(self.table, rows.targets, sample_weight=rows.counts)
        return GateInput(transformer, self.reader), learnt

    def held_out(self, learnt: Any, train: np.ndarray, test: np.ndarray) -> tuple[Any, Any]:
        """Return the features of the samples `train` and `test`; `learnt` are all."""
        if not self.refitted:
            return learnt[train], learnt[test]
        rows, transformer = self.rows, self.gate.transformer(self.features)
        targets = None if rows.targets is None else rows.targets[train]
        counts = None if rows.counts is None else rows.counts[train]
        table, new = (safe_indexing(self.table, samples) for samples in (train, test))
        of_training = transformer.fit_transform(table, targets, sample_weight=counts)
        return of_training, transformer.transform(new)


# -- Kernels weighted by a gate: parameters, gating features, outputs of new samples --------------


class Evaluations(NamedTuple):
    """Kernel values of a prediction, `total`: rows times support vectors times kernels, per gate.

    `computed` of them are needed: the gate of the kernel is above `threshold` at both samples.
    """

    total: int
    computed: int

    @property
    def saved(self) -> int:
        """Number of values that need not be computed."""
        return self.total - self.computed


@estimator()
class GateParameters:
    """Parameters, attributes and methods of estimators with a gate.

    Parameters
    ----------
    gating : {"sigmoid", "softmax", "gaussian", "cluster", "instance"} or a gate, default="sigmoid"
        How much a kernel counts at a sample: kernels that may work together (sigmoid) or competing
        ones (softmax, gaussian). With "cluster" the gate is constant in each cluster of samples,
        with "instance" it is learnt for each training sample and equal in new ones. A name is the
        gate with default parameters; a gate object has others, such as
        ``Softmax(features=[0, 1], penalty=0.01)``, see :class:`~manykernels.gating.Gate`. In a
        grid search they are ``gating__penalty`` and so on. Several copies of one kernel are
        normal use: each gets a region of its own.
    tol : float, default=1e-3
        Relative change of the objective at which to stop, in two steps in a row. Not a duality
        gap, since the problem is not convex; smaller changes hardly move predictions.

    Attributes
    ----------
    gating_coef_ : dict of ndarray
        Parameters of the gate, on standardised gating features.
    plain_weights_ : ndarray of shape (n_kernels,)
        Kernel weights of plain multiple kernel learning, where the gate starts.
    certificate_ : StationarityCertificate
        Norm of the gradient in the gate's parameters, and duality gap of the machine.
        ``converged``, ``status`` and ``message`` are as in other certificates.
    objective_ : float
        J at the end, with the penalty.
    history_ : dict of list
        ``objective`` J, which never rises, ``gradient_norm`` and ``n_inner_solves`` at each step.
    n_iter_ : int
        Steps on the gate from the best start, at least 1; of several gates, the most. `history_`
        tells no step from one.
    n_inner_solves_ : int
        Machines trained in all.
    finished_ : bool
        False after an interruption (Ctrl-C), which leaves the best model so far.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        Coefficients of the support vectors, on the kernels as weighted by the gate.

    References
    ----------
    M. Gönen, E. Alpaydın. Localized algorithms for multiple kernel learning. Pattern Recognition
    46, 2013.
    """

    gating: str | Gate = "sigmoid"
    tol: float = 1e-3

    _predictor: ClassVar[GatedPredictor]

    _parameter_constraints: ClassVar[dict[str, Any]] = {"gating": [str, Gate]}

    def set_params(self, **params: Any) -> Any:
        """Set parameters; those of the gate are ``gating__<parameter>``."""
        self.gating = params.pop("gating", self.gating)
        if any(name.startswith("gating__") for name in params):
            self.gating = as_gate(self.gating)
        return super().set_params(**params)  # type: ignore[misc]

    def gate(self, X: Table) -> np.ndarray:
        """Return how much each kernel counts, (n_rows, n_kernels).

        With a gate for every class, (n_classes, n_rows, n_kernels).
        """
        check_is_fitted(self)
        outputs = self._gates(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs.swapaxes(0, 1)

    @by_blocks
    def _gates(self, X: Table) -> np.ndarray:
        """Return the outputs of every gate, (n_rows, n_gates, n_kernels)."""
        return np.stack(self._predictor.gate_outputs(self, X), axis=1)

    def active_kernels(self, X: Table) -> np.ndarray:
        """Whether each kernel counts: its gate is above `threshold`; shaped as :meth:`gate`."""
        return self.gate(X) > as_gate(self.gating).threshold

    def region_summary(self) -> list[dict[str, Any]]:
        """Summarise the gate on the training samples, one dict per kernel (and gate).

        ``kernel``, ``mean_gate``, ``n_active`` (gate above `threshold`), ``n_largest`` (no other
        kernel counts more) and ``n_support`` (support vectors among the active).
        """
        check_is_fitted(self)
        return self._predictor.region_summary(as_gate(self.gating).threshold)

    def evaluations(self, X: Table) -> Evaluations:
        """Count the kernel values of a prediction for X, and those that the gate saves.

        Kernel values for the features of the gate are not counted.
        """
        check_is_fitted(self)
        blocks = [self._predictor.evaluations(self, block) for block in parts_of(self, X)]
        return Evaluations(*(sum(numbers) for numbers in zip(*blocks, strict=True)))


class DescentAttributes:
    """Attributes of estimators that learn a gate of one penalty.

    Attributes
    ----------
    held_out_losses_ : ndarray of shape (n_steps + 1,) or None
        Loss of held-out samples after 0, 1, … steps: log loss of calibrated probabilities, or mean
        square error. As many steps are taken as have the least loss with no more errors than step
        0; none if it is not smaller by two standard errors.
    restart_objectives_ : list of float
        J at the end of every start.
    """


@dataclass(frozen=True)
class GatedKernels:
    """Normalised training kernels and gating features, and both without held-out samples."""

    rows: TrainingRows
    kernels: TrainingKernels
    transform: Chain
    samples: GatedSamples
    table: GateTable
    inputs: GateInput
    normalize: str | None

    @classmethod
    def of(cls, rows: TrainingRows, normalize: str | None, gate: Gate) -> GatedKernels:
        """Compute or check the kernels of `rows`, and the features of the gate."""
        table = GateTable.of(rows, gate)
        # Features of a table are learnt first: if they are refused, no kernel is computed.
        learnt = None if table is None else table.learn()
        kernels = TrainingKernels.of(rows, rows.counts, shift_invariant=False)
        transform = kernels.preparation(normalize, center=False)
        stack = kernels.prepared(transform, rows.counts)
        if table is None or learnt is None:
            reader, components = ComponentReader.learn(
                gate.features, kernels, transform, stack, rows.counts
            )
            table = GateTable(rows, gate, None, reader, components, refitted=False)
            learnt = table.learn()
        inputs, features = learnt
        samples = GatedSamples(stack, features)
        return cls(rows, kernels, transform, samples, table, inputs, normalize)

    def learn(
        self,
        learning: GateLearning,
        machines: Sequence[Machine],
        judges: Sequence[Judge],
        task: FitTask,
    ) -> LearntGates:
        """Learn a gate for every machine, with a warning if one has not converged."""
        folds = self._folds(learning.n_folds) if judges else []
        learnt = learning.learn(self.samples, machines, judges, folds, task)
        learnt.warn()
        return learnt

    def _folds(self, n_folds: int) -> list[Fold]:
        """Return folds of whole groups of samples; none if there are fewer than two."""
        rows = self.rows
        labels = np.zeros(len(rows), int) if rows.labels is None else rows.labels
        if n_folds == 0 or len(rows) < 2:
            return []
        every = np.arange(len(rows))
        tests = stratified_folds(labels, rows.groups, n_folds, rows.counts)
        if len(tests) < 2:
            return []
        return [self.fold(np.delete(every, test), test) for test in tests]

    def fold(self, train: np.ndarray, test: np.ndarray) -> Fold:
        """Return the fold with kernels and features of the samples `train` and `test`."""

        def parts() -> tuple[GatedSamples, Block]:
            raw, counts = self.kernels.stack, self.rows.counts
            transform = self.kernels.preparation(self.normalize, center=False)
            stack = transform.fit_transform(
                raw[np.ix_(train, train)],
                sample_weight=None if counts is None else counts[train],
            )
            new = transform.transform(raw[np.ix_(test, train)])
            features, of_new = self.table.held_out(self.samples.features, train, test)
            block = Block([new.kernel(j) for j in range(new.n_kernels)], of_new)
            return GatedSamples(stack, features), block

        return Fold(train, test, parts)

    def attributes(
        self, rows: TrainingRows, learnt: LearntGates, dual: np.ndarray, intercept: np.ndarray
    ) -> dict[str, Any]:
        """Return the fitted attributes, given coefficients `dual` of all training samples."""
        vectors = SupportVectors.of(dual)
        all_samples = self.kernels.source
        source = all_samples.keep(vectors.kept)
        transform = self.transform.for_columns(vectors.kept)
        predictor = GatedPredictor(
            # A completion compares new samples with all training samples.
            all_samples if transform.needs_all_columns else source,
            transform,
            self.inputs,
            learnt.learning.gate,
            [point.theta for point in learnt.points],
            [point.outputs for point in learnt.points],
            vectors,
        )
        return {
            **rows.attributes,
            **learnt.attributes,
            **vectors.attributes(rows, source),
            "kernel_names_": source.names,
            "intercept_": intercept,
            "_predictor": predictor,
        }


@storable
@dataclass(frozen=True)
class GatedPredictor:
    """``Σ_i coefficient_i Σ_p η_p(x) k_p(x, x_i) η_p(x_i)`` for new samples x.

    `source` has the training samples x_i with coefficients, `transform` normalises kernels
    between new samples and these. There is one gate for all outputs, or one for each group of
    them: `thetas` are their parameters, `training_gates` η of all training samples,
    (m, n_kernels).
    """

    source: Source
    transform: Chain
    inputs: GateInput
    gate: Gate
    thetas: list[np.ndarray]
    training_gates: list[np.ndarray]
    vectors: SupportVectors

    def gate_outputs(self, estimator: BaseEstimator, X: Table) -> list[np.ndarray]:
        """Return η of the rows of X for every gate, (n_rows, n_kernels) each."""
        return self._gates_at(self.source.read(estimator, X))

    def outputs(
        self, estimator: BaseEstimator, X: Table, coefficients: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the outputs of new samples, (n_rows, n_outputs).

        A kernel is evaluated only where its gate is above the threshold at both samples.
        """
        coefficients = self.vectors.coefficients if coefficients is None else coefficients
        data, threshold = self.source.read(estimator, X), as_gate(estimator.gating).threshold
        gates = self._gates_at(data)
        n_outputs = coefficients.shape[1]
        outputs = np.zeros((len(gates[0]), n_outputs))
        n_per_gate = n_outputs // len(gates)
        for k, (new, old) in enumerate(zip(gates, self._gates_of_kept, strict=True)):
            of_gate = slice(k * n_per_gate, (k + 1) * n_per_gate)
            for p in range(new.shape[1]):
                columns = np.flatnonzero(old[:, p] > threshold)
                rows = np.flatnonzero(new[:, p] > threshold)
                gated = old[columns, p, None] * coefficients[columns, of_gate]
                if not len(columns):
                    continue
                n_columns = len(columns)
                if self.transform.needs_all_columns:
                    n_columns = self.source.n_samples * len(self.source.names)
                step = max(1, BLOCK_ENTRIES // n_columns)
                for some in (rows[i : i + step] for i in range(0, len(rows), step)):
                    block = self._block(data, p, some, columns)
                    outputs[some, of_gate] += new[some, p, None] * (block @ gated)
        return outputs

    def evaluations(self, estimator: BaseEstimator, X: Table) -> Evaluations:
        """Return the number of kernel values that :meth:`outputs` needs."""
        gates, threshold = self.gate_outputs(estimator, X), as_gate(estimator.gating).threshold
        n_rows, n_kernels = gates[0].shape
        computed = sum(
            int((new > threshold).sum(axis=0) @ (old > threshold).sum(axis=0))
            for new, old in zip(gates, self._gates_of_kept, strict=True)
        )
        return Evaluations(len(gates) * n_rows * n_kernels * len(self.vectors.kept), computed)

    def region_summary(self, threshold: float) -> list[dict[str, Any]]:
        """Summarise the gates on the training samples, one dict per kernel (and gate)."""
        several = len(self.training_gates) > 1
        return [
            {
                **({"gate": k} if several else {}),
                "kernel": name,
                "mean_gate": float(outputs[:, p].mean()),
                "n_active": int((outputs[:, p] > threshold).sum()),
                "n_largest": int((outputs.argmax(axis=1) == p).sum()),
                "n_support": int((outputs[self.vectors.support, p] > threshold).sum()),
            }
            for k, outputs in enumerate(self.training_gates)
            for p, name in enumerate(self.source.names)
        ]

    def _gates_at(self, data: Any) -> list[np.ndarray]:
        features = self.inputs.transform(data)
        return [self.gate.outputs(theta, features) for theta in self.thetas]

    @property
    def _gates_of_kept(self) -> list[np.ndarray]:
        return [outputs[self.vectors.kept] for outputs in self.training_gates]

    def _block(self, data: Any, p: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return kernel p between some rows of the data and some of the stored samples."""
        kernel = np.array([p])
        transform = self.transform.select(kernel).for_columns(columns)
        needed = None if transform.needs_all_columns else columns
        stack = self.source.block(data, rows, self.transform.sources(kernel), needed)
        return transform.transform(stack).kernel(0)


# -- Gates at every point of a grid of penalties, and their outputs at held-out samples -----------


# Seed of the starts without held-out samples; the final start uses that of the gate.
_SEED = 0

Machines = Callable[[dict[str, float]], Machine]


def gate_penalties(gate: Gate) -> np.ndarray:
    """Return the penalties on a gate from which an estimator with CV chooses."""
    if isinstance(gate.penalty, Real):
        return checked_gate_penalties([gate.penalty])
    return checked_gate_penalties(None if isinstance(gate.penalty, str) else gate.penalty)


@dataclass(frozen=True)
class GatedGrid:
    """A grid whose last parameter is the penalty on the gate; `machines` make the rest of it."""

    grid: Grid
    learning: GateLearning
    machines: Machines

    @property
    def _penalties(self) -> np.ndarray:
        return self.grid.values["penalty"]

    def held_out_outputs(self, kernels: GatedKernels, search: Search) -> list[SplitOutputs]:
        """Return outputs at the test samples of every split, by gates learnt without them."""
        splits = search.splits
        parallel = Parallel(n_jobs=search.estimator.n_jobs)
        outputs: list[SplitOutputs] = parallel(
            delayed(self._outputs)(
                kernels.fold(_training(split), split.test),
                search.task.part(f"split {k + 1}/{len(splits)}", self.grid.size),
            )
            for k, split in enumerate(splits)
        )
        return outputs

    def _outputs(self, fold: Fold, task: FitTask) -> SplitOutputs:
        samples, block = fold.parts()
        solved: SplitOutputs | None = None
        gate, rng = self.learning.gate, np.random.default_rng(_SEED)
        falling = np.argsort(-self._penalties)
        others = [range(len(values)) for values in list(self.grid.values.values())[:-1]]
        for rest in product(*others):
            params = self.grid.at((*rest, 0))
            machine = self.machines(params).of(fold.train)
            problem, _, n_plain = self.learning.problem(samples, machine, params["p"])
            path = GatedPath(problem, self.learning.options, rng)
            descents = path.along(self._penalties[falling].tolist())
            before = -n_plain
            for k, descent in zip(falling, descents, strict=True):
                outputs = block.outputs(
                    descent.point, gate.outputs(descent.point.theta, block.features)
                )
                if solved is None:
                    solved = SplitOutputs.unsolved(self.grid.shape, outputs.shape)
                at = (*rest, int(k))
                n_solves = problem.plain.n_inner_solves - before
                before = problem.plain.n_inner_solves
                params, certificate = self.grid.at(at), descent.certificate
                progress = solved.note(at, params, outputs, certificate, n_solves)
                if task(progress):
                    task.end()
                    return solved
        task.end()
        assert solved is not None, "a grid has at least one point"
        return solved

    def learn(self, samples: GatedSamples, params: dict[str, float], task: FitTask) -> LearntGates:
        """Learn the gate of all samples at one point of the grid, by the same path."""
        learning = self.learning
        problem, weights, n_plain = learning.problem(samples, self.machines(params), params["p"])
        penalties = np.sort(self._penalties)[::-1]
        penalties = penalties[penalties >= params["penalty"]]
        path = GatedPath(problem, learning.options, learning.rng)
        final = task.subtask("final fit", len(penalties) * (learning.options.max_iter + 1))
        *_, last = path.along(penalties.tolist(), final)
        restarts = _single(last, problem.plain.n_inner_solves)
        gate = LearntGate(restarts, weights, None, n_plain, last.status)
        learnt = LearntGates(learning, [gate], on_path=True)
        learnt.warn()
        final.end()
        return learnt


def _single(descent: Descent, n_inner_solves: int) -> Restarts:
    return Restarts(descent, [descent.point.value], 0, n_inner_solves, descent.status)


def _training(split: Split) -> np.ndarray:
    if split.train is None:
        raise ValueError(
            "A gate is judged by samples of the training data: cv is a number of folds, a "
            "splitter or an iterable of splits, not a validation set."
        )
    return split.train

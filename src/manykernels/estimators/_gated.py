"""Kernels weighted by a gate: parameters, gating features, outputs of new samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._sklearn import Interval
from ..gating import Gate, GatingFeatures
from ..gating.learning import GateLearning, LearntGates
from ..gating.machines import Machine
from ..kernels import KernelStack, Views
from ..kernels.transforms import Chain
from ._base import estimator
from ._inputs import Source
from ._kernels import BLOCK_ENTRIES, TrainingKernels
from ._machines import SupportVectors
from ._progress import FitTask
from ._rows import TrainingRows


class Evaluations(NamedTuple):
    """Kernel values of a prediction, `total`: rows times support vectors times kernels, per gate.

    `computed` of them are needed: the gate of the kernel is above ``gate_tol`` at both samples.
    """

    total: int
    computed: int

    @property
    def saved(self) -> int:
        """How many need not be computed."""
        return self.total - self.computed


@estimator
class GateParameters:
    """Parameters, attributes and methods of estimators with a gate.

    Parameters
    ----------
    gating : {"softmax", "sigmoid", "gaussian"} or a gate, default="softmax"
        How much a kernel counts at a sample: competing kernels (softmax, gaussian) or ones that
        may work together (sigmoid). See :mod:`manykernels.gating`. Several copies of one kernel
        are normal use: each gets a region of its own.
    gating_features : None, columns, int, transformer or kernel, default=None
        What the gate looks at: all columns, some of them, principal components, what a
        transformer makes of X, or similarities with the training samples. With several views,
        the name of one of them, or any of the above, of all their columns. With precomputed
        kernels, the name of one of them (similarities by it), or any of the above, of the table
        given to :meth:`KernelStack.with_features`.
    n_init : int, default=1
        Random starts; the lowest objective is kept.
    normalize : {"spherical", "multiplicative", "trace"} or None, default="spherical"
        How kernels are made comparable; by default every sample has length one.
    quasi_newton : bool, default=False
        Steps of L-BFGS on the gate instead of the paper's gradient steps: far fewer of them to a
        given objective.
    gate_tol : float, default=1e-6
        A prediction evaluates a kernel only where its gate is above this at both samples; unless
        `missing` is "error", everywhere.
    tol : float, default=1e-2
        Relative change of the objective at which to stop, in two steps in a row. A gate can fit
        single samples: smaller values and quasi-Newton steps lower the objective further, and on
        most data raise the error on new samples.
    max_iter : int, default=200
        Most steps on the gate.
    random_state : int, RandomState or None, default=None
        Random numbers of the starts.

    Attributes
    ----------
    gating_coef_ : dict of ndarray
        Parameters of the gate, on standardised gating features.
    certificate_ : StationarityCertificate
        Norm of the gradient in the gate's parameters, and duality gap of the machine.
        ``converged``, ``status`` and ``message`` are as in other certificates.
    objective_ : float
        J at the end.
    history_ : dict of list
        ``objective`` J, which never rises, ``gradient_norm`` and ``n_inner_solves`` at each step.
    restart_objectives_ : list of float
        J at the end of every start.
    n_iter_ : int
        Steps on the gate from the best start; of several gates, the most.
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

    gating: Any = "softmax"
    gating_features: Any = None
    n_init: int = 1
    normalize: str | None = "spherical"
    quasi_newton: bool = False
    gate_tol: float = 1e-6
    tol: float = 1e-2
    max_iter: int = 200
    random_state: Any = None

    _expansion: ClassVar[GatedExpansion]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gating": [str, Gate],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "quasi_newton": ["boolean"],
        "gate_tol": [Interval(Real, 0, 1, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def gate(self, X: Any) -> np.ndarray:
        """How much each kernel counts, (n_rows, n_kernels).

        With a gate for every class, (n_classes, n_rows, n_kernels).
        """
        check_is_fitted(self)
        outputs = self._expansion.gate_outputs(self, X)
        return outputs[0] if len(outputs) == 1 else np.array(outputs)

    def active_kernels(self, X: Any) -> np.ndarray:
        """Which kernels count, those with a gate above `gate_tol`; boolean, as :meth:`gate`."""
        return self.gate(X) > self.gate_tol

    def region_summary(self) -> list[dict[str, Any]]:
        """What each kernel does on the training samples, one dict per kernel (and gate).

        ``kernel``, ``mean_gate``, ``n_active`` (gate above `gate_tol`), ``n_largest`` (no other
        kernel counts more) and ``n_support`` (support vectors among the active).
        """
        check_is_fitted(self)
        return self._expansion.region_summary(self.gate_tol)

    def evaluations(self, X: Any) -> Evaluations:
        """How many kernel values a prediction for X needs, and how many the gates save."""
        check_is_fitted(self)
        return self._expansion.evaluations(self, X)


@dataclass(frozen=True)
class GateInput:
    """What a gate looks at: features of the rows of X.

    These may be features of one view, or the values of one precomputed kernel (an empirical
    kernel map) at those `columns` of test blocks that belong to training samples in use; None if
    all do. `name` is that of the view or kernel.
    """

    features: GatingFeatures
    name: str | None
    columns: np.ndarray | None

    @classmethod
    def learn(cls, rows: TrainingRows, what: Any) -> tuple[GateInput, np.ndarray]:
        """The input, and the features of the training rows; `what` is ``gating_features``."""
        data = rows.data.X
        named = isinstance(data, KernelStack | Views) and isinstance(what, str)
        name = what if named else None
        features = GatingFeatures(None if named else what)
        # Training matrices have columns for the samples in use only.
        training = cls(features, name, None)
        features.fit(training._table(data), rows.targets, sample_weight=rows.counts)
        return cls(features, name, rows.data.columns), training.transform(data)

    def _table(self, data: Any) -> Any:
        """The table that the features of checked rows are made from."""
        if isinstance(data, Views):
            chosen = data if self.name is None else data.take([data.position(self.name)], axis=1)
            lacking = [name for name in chosen if not chosen.has(name).all()]
            if lacking:
                raise ValueError(
                    f"The gate looks at view {lacking[0]!r}, which some samples lack. Name a view "
                    "that all samples have: gating_features=<name of a view>."
                )
            try:
                return chosen.joined()
            except (TypeError, ValueError) as error:
                raise type(error)(
                    f"The gate looks at numbers: {error}. Name a view of numbers: "
                    "gating_features=<name of a view>."
                ) from error
        if not isinstance(data, KernelStack):
            return data
        if self.name is not None:
            block = data.kernel(self.name)
            if np.isnan(block).any():
                raise ValueError(
                    f"The gate looks at kernel {self.name!r}, which some samples lack. Name a "
                    "kernel that all samples have, or pass stack.with_features(table)."
                )
            return block if self.columns is None else block[:, self.columns]
        if data.features is None:
            raise ValueError(
                'With kernels="precomputed" the gate needs features of its own: '
                "stack.with_features(table), or gating_features=<name of a kernel of the stack>, "
                f"one of {', '.join(data.names)}."
            )
        return data.features

    def transform(self, data: Any) -> np.ndarray:
        """Gating features of checked rows."""
        return self.features.transform(self._table(data))


@dataclass(frozen=True)
class GatedKernels:
    """Normalised training kernels (`matrices`), and the gating features of the training rows."""

    kernels: TrainingKernels
    transform: Chain
    matrices: list[np.ndarray]
    inputs: GateInput
    features: np.ndarray

    @classmethod
    def of(cls, rows: TrainingRows, normalize: str | None, what: Any) -> GatedKernels:
        """Compute or check the kernels of `rows`; `what` are the ``gating_features``."""
        inputs, features = GateInput.learn(rows, what)
        kernels = TrainingKernels.of(rows, rows.counts, shift_invariant=False)
        transform = kernels.preparation(normalize, center=False)
        stack = kernels.prepared(transform, rows.counts)
        matrices = [np.ascontiguousarray(stack.kernel(j)) for j in range(stack.n_kernels)]
        return cls(kernels, transform, matrices, inputs, features)

    def learn(
        self, learning: GateLearning, machines: Sequence[Machine], task: FitTask
    ) -> LearntGates:
        """Learn a gate for every machine, with a warning if one has not converged."""
        learnt = learning.learn(self.matrices, self.features, machines, task)
        learnt.warn()
        return learnt

    def attributes(
        self, rows: TrainingRows, learnt: LearntGates, dual: np.ndarray, intercept: np.ndarray
    ) -> dict[str, Any]:
        """Fitted attributes of machines with coefficients `dual` of all training samples."""
        vectors = SupportVectors.of(dual)
        every = self.kernels.source
        source, transform = every.keep(vectors.kept), self.transform.for_columns(vectors.kept)
        expansion = GatedExpansion(
            # A completion compares new samples with all training samples.
            every if transform.needs_all_columns else source,
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
            "_expansion": expansion,
        }


@dataclass(frozen=True)
class GatedExpansion:
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

    def gate_outputs(self, estimator: Any, X: Any) -> list[np.ndarray]:
        """η of the rows of X, for every gate, (n_rows, n_kernels)."""
        return self._gates_at(self.source.read(estimator, X))

    def outputs(
        self, estimator: Any, X: Any, coefficients: np.ndarray | None = None
    ) -> np.ndarray:
        """Outputs of new samples, (n_rows, n_outputs).

        A kernel is evaluated only where its gate is above `gate_tol` at both samples.
        """
        coefficients = self.vectors.coefficients if coefficients is None else coefficients
        data = self.source.read(estimator, X)
        gates = self._gates_at(data)
        n_outputs = coefficients.shape[1]
        outputs = np.zeros((len(gates[0]), n_outputs))
        width = n_outputs // len(gates)
        for group, (new, old) in enumerate(zip(gates, self._gates_of_kept, strict=True)):
            ours = slice(group * width, (group + 1) * width)
            for p in range(new.shape[1]):
                columns = np.flatnonzero(old[:, p] > estimator.gate_tol)
                rows = np.flatnonzero(new[:, p] > estimator.gate_tol)
                gated = old[columns, p, None] * coefficients[columns, ours]
                if not len(columns):
                    continue
                width_of_block = len(columns)
                if self.transform.needs_all_columns:
                    width_of_block = self.source.n_samples * len(self.source.names)
                step = max(1, BLOCK_ENTRIES // width_of_block)
                for part in (rows[i : i + step] for i in range(0, len(rows), step)):
                    block = self._block(data, p, part, columns)
                    outputs[part, ours] += new[part, p, None] * (block @ gated)
        return outputs

    def evaluations(self, estimator: Any, X: Any) -> Evaluations:
        """How many kernel values :meth:`outputs` needs."""
        gates = self.gate_outputs(estimator, X)
        n_rows, n_kernels = gates[0].shape
        computed = sum(
            int((new > estimator.gate_tol).sum(axis=0) @ (old > estimator.gate_tol).sum(axis=0))
            for new, old in zip(gates, self._gates_of_kept, strict=True)
        )
        return Evaluations(len(gates) * n_rows * n_kernels * len(self.vectors.kept), computed)

    def region_summary(self, gate_tol: float) -> list[dict[str, Any]]:
        """What each kernel does on the training samples, one dict per kernel (and gate)."""
        several = len(self.training_gates) > 1
        return [
            {
                **({"gate": k} if several else {}),
                "kernel": name,
                "mean_gate": float(outputs[:, p].mean()),
                "n_active": int((outputs[:, p] > gate_tol).sum()),
                "n_largest": int((outputs.argmax(axis=1) == p).sum()),
                "n_support": int((outputs[self.vectors.support, p] > gate_tol).sum()),
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
        """Kernel p between some rows of the data and some of the samples that are kept."""
        kernel = np.array([p])
        transform = self.transform.select(kernel).for_columns(columns)
        needed = None if transform.needs_all_columns else columns
        stack = self.source.block(data, rows, self.transform.sources(kernel), needed)
        return transform.transform(stack).kernel(0)

"""What localized machines share: kernels, a gate, and prediction where both are open."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._rounding import ROUNDING
from .._sklearn import Interval, StrOptions, safe_indexing
from ..gating import Gate, GatingFeatures
from ..gating.learning import GateLearning, LearntGates
from ..gating.machines import Machine
from ..kernels import KernelStack
from ..kernels.transforms import preparation
from ._rows import RowWeights

# Entries of a test block held at once.
_BLOCK_ENTRIES = 2**22


class Evaluations(NamedTuple):
    """Kernel values that predictions need.

    Attributes
    ----------
    total : int
        Rows times support vectors times kernels.
    computed : int
        Those where both gates are open.
    """

    total: int
    computed: int

    @property
    def saved(self) -> int:
        """Those that need not be computed."""
        return self.total - self.computed


class LocalizedMachine(RowWeights, BaseEstimator):
    """Base of the localized estimators: a subclass says which machines it trains.

    Every group of outputs has a gate of its own; most machines have one group.
    """

    gating: Any
    gating_features: Any
    n_init: int
    normalize: str | None
    quasi_newton: bool
    gate_tol: float
    tol: float
    max_iter: int
    random_state: Any
    verbose: Any
    _shift_invariant = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gating": [str, Gate],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "normalize": [StrOptions({"multiplicative", "spherical", "trace"}), None],
        "quasi_newton": ["boolean"],
        "gate_tol": [Interval(Real, 0, 1, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    # -- training --------------------------------------------------------------------------

    def _fit_gates(
        self, data: Any, mass: np.ndarray | None, machines: list[Machine], y: Any = None
    ) -> Self:
        """Learn a gate for every machine on validated data.

        `y` is for gating features that learn from it.
        """
        learning = GateLearning.of(self)
        self._map_columns = None
        features = self._learn_features(data, mass, y)
        transform = preparation(self.normalize, center=False)
        stack = self._prepared_stack(data, transform, mass)
        kernels = [np.ascontiguousarray(stack.kernel(j)) for j in range(stack.n_kernels)]
        learnt = learning.learn(kernels, features, machines, self._observer)
        for name, value in learnt.attributes.items():
            setattr(self, name, value)
        self._gate = learning.gate
        self._thetas = [point.theta for point in learnt.points]
        self._train_outputs = [point.outputs for point in learnt.points]
        self._remember_machines(learnt)
        self._remember_columns(stack, transform)
        learnt.warn()
        return self

    def _learn_features(self, data: Any, mass: np.ndarray | None, y: Any) -> np.ndarray:
        what, table = self.gating_features, data
        if isinstance(data, KernelStack):
            table = self._stack_features(data)
            what = None if isinstance(what, str) else what
        self._features = GatingFeatures(what).fit(table, y, sample_weight=mass)
        return self._features.transform(table)

    def _stack_features(self, stack: KernelStack) -> np.ndarray:
        """What the gate looks at where kernels are ready-made."""
        if isinstance(self.gating_features, str):
            # The empirical kernel map of one of the kernels.
            block = stack.kernel(self.gating_features)
            return block if self._map_columns is None else block[:, self._map_columns]
        if stack.features is None:
            raise ValueError(
                'With kernels="precomputed" the gate needs features of its own: '
                "stack.with_features(table), or gating_features=<name of a kernel of the stack>, "
                f"one of {', '.join(stack.names)}."
            )
        return stack.features

    #: Columns of a test block that the empirical kernel map has, None for all.
    _map_columns: np.ndarray | None = None

    def _observer(self, progress: Any) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] {progress}")

    def _remember_machines(self, learnt: LearntGates) -> None:
        """Coefficients of the training samples and biases."""
        self.intercept_ = learnt.biases
        self._set_coefficients(learnt.dual)

    def _set_coefficients(self, dual: np.ndarray) -> None:
        dual = np.where(np.abs(dual) <= ROUNDING * np.abs(dual).max(initial=0.0), 0.0, dual)
        support = np.flatnonzero(dual.any(axis=1))
        rows = support if len(support) else np.array([0])
        self.support_ = self._kept_rows[support].astype(np.int32)
        self.dual_coef_ = np.ascontiguousarray(dual[support].T)
        self._rows = rows
        self._coefficients = dual[rows]

    def _remember_columns(self, stack: KernelStack, transform: Any) -> None:
        self._map_columns = self._train_columns if self._is_precomputed else None
        self._remember_kernels(stack, np.ones(stack.n_kernels), transform, self._rows)
        # A kernel that is nothing beside the others may be alone where its gate is open.
        self._transform = transform.for_columns(self._rows)
        self._support_outputs = [outputs[self._rows] for outputs in self._train_outputs]
        if not self._is_precomputed:
            self.support_vectors_ = self.X_fit_

    # -- gates -----------------------------------------------------------------------------

    def gate(self, X: Any) -> np.ndarray:
        """How much each kernel counts, (n_rows, n_kernels).

        With a gate for every class, (n_classes, n_rows, n_kernels).
        """
        check_is_fitted(self, "dual_coef_")
        outputs = self._outputs(self._gating_table(X))
        return outputs[0] if len(outputs) == 1 else np.array(outputs)

    def active_kernels(self, X: Any) -> np.ndarray:
        """Which kernels count, those with a gate above `gate_tol`; boolean, as :meth:`gate`."""
        return self.gate(X) > self.gate_tol

    def region_summary(self) -> list[dict[str, Any]]:
        """What each kernel does on the training samples, one dict per kernel (and gate).

        ``kernel``, ``mean_gate``, ``n_active`` (gate above `gate_tol`), ``n_largest`` (no other
        kernel counts more) and ``n_support`` (support vectors among the active).
        """
        check_is_fitted(self, "dual_coef_")
        rows = []
        support = self._rows[: len(self.support_)]
        for group, outputs in enumerate(self._train_outputs):
            active = outputs > self.gate_tol
            largest = np.bincount(outputs.argmax(axis=1), minlength=outputs.shape[1])
            for p, name in enumerate(self.kernel_names_):
                row = {"gate": group} if len(self._train_outputs) > 1 else {}
                rows.append(
                    {
                        **row,
                        "kernel": name,
                        "mean_gate": float(outputs[:, p].mean()),
                        "n_active": int(active[:, p].sum()),
                        "n_largest": int(largest[p]),
                        "n_support": int(active[support, p].sum()),
                    }
                )
        return rows

    def evaluations(self, X: Any) -> Evaluations:
        """How many kernel values a prediction for X needs, and how many the gates save."""
        check_is_fitted(self, "dual_coef_")
        outputs = self._outputs(self._gating_table(X))
        n_rows, n_kernels = outputs[0].shape
        computed = sum(
            int((new > self.gate_tol).sum(axis=0) @ (old > self.gate_tol).sum(axis=0))
            for new, old in zip(outputs, self._support_outputs, strict=True)
        )
        total = len(outputs) * n_rows * n_kernels * len(self._rows)
        return Evaluations(total, computed)

    def _outputs(self, table: Any) -> list[np.ndarray]:
        features = self._features.transform(table)
        return [self._gate.outputs(theta, features) for theta in self._thetas]

    def _gating_table(self, X: Any) -> Any:
        if self._is_precomputed:
            return self._stack_features(self._checked_test_stack(X))
        return self._table(X, reset=False)

    # -- prediction ------------------------------------------------------------------------

    def _scores(self, X: Any) -> np.ndarray:
        """``Σ_i coefficient_i k_η(x, x_i)`` of every output, (n_rows, n_outputs)."""
        check_is_fitted(self, "dual_coef_")
        if self._is_precomputed:
            data = self._checked_test_stack(X)
            outputs = self._outputs(self._stack_features(data))
        else:
            data = self._table(X, reset=False)
            outputs = self._outputs(data)
        n_rows, n_outputs = len(outputs[0]), self._coefficients.shape[1]
        scores = np.zeros((n_rows, n_outputs))
        width = n_outputs // len(outputs)
        for group, (new, old) in enumerate(zip(outputs, self._support_outputs, strict=True)):
            ours = slice(group * width, (group + 1) * width)
            for p in range(new.shape[1]):
                columns = np.flatnonzero(old[:, p] > self.gate_tol)
                rows = np.flatnonzero(new[:, p] > self.gate_tol)
                gated = old[columns, p, None] * self._coefficients[columns, ours]
                for part in _parts(rows, len(columns)):
                    block = self._block(data, p, part, columns)
                    scores[part, ours] += new[part, p, None] * (block @ gated)
        return scores

    def _block(self, data: Any, p: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Kernel p between some rows of the data and some support vectors."""
        if self._is_precomputed:
            known = self._train_columns
            place = columns if known is None else known[columns]
            stack = data.select([p])[np.ix_(rows, place)]
        else:
            union = self.union_.subset([p])
            stack = union(safe_indexing(data, rows), safe_indexing(self.X_fit_, columns))
        transform = self._transform.select(np.array([p])).for_columns(columns)
        return transform.transform(stack).kernel(0)


def _parts(rows: np.ndarray, width: int) -> Iterator[np.ndarray]:
    """Rows in parts whose blocks fit into memory."""
    if len(rows) == 0 or width == 0:
        return
    height = max(1, _BLOCK_ENTRIES // width)
    for start in range(0, len(rows), height):
        yield rows[start : start + height]

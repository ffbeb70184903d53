"""What support vector machines with several kernels share: fit from data to coefficients."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._sklearn import StrOptions, safe_indexing
from ..kernels import KernelStack
from ..kernels.transforms import Center, StackTransform, preparation
from ..losses import BoxLoss, Certificate, Outline
from ..solvers import Solution
from ._weight_learner import WeightLearner

# Part of `tol` that is left to the inner solutions.
INNER_SHARE = 1e-3
# Dual variables below this part of the largest are rounding.
_NOTHING = 1e-14


class SupportVectorMachine(WeightLearner):
    """Base of the machines: a subclass says what it reads of y and which loss it has.

    Every group of outputs has kernel weights of its own; most machines have one group.
    """

    normalize: str | None
    _inner_solves = "n_svm_solves"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **WeightLearner._parameter_constraints,
        "normalize": [StrOptions({"multiplicative", "spherical", "trace"}), None],
    }

    @abstractmethod
    def _outline(self, n_samples: int, n_kernels: int) -> Outline:
        """What one loss will be like, before kernels are computed."""

    def _fit_machine(
        self,
        X: Any,
        y: Any,
        data: Any,
        mass: np.ndarray | None,
        make_losses: Any,
    ) -> Self:
        """Learn weights and machine from validated data.

        `mass` says how often samples occur, for the scales of kernels; `make_losses` gives the
        losses of a prepared stack, one per group of outputs.
        """
        solver = self._chosen_solver()
        n_samples = len(self._kept_rows)
        self._refuse_unfit(solver, self._outline(n_samples, self._count_kernels(data)))
        transform = preparation(self.normalize, center=False)
        stack = self._prepared_stack(data, transform, mass, solver=solver)
        if self._shift_invariant:
            # Where coefficients sum to zero centring changes nothing but the bias, and what is
            # common to all samples would drown their differences in rounding.
            stack = Center().fit_transform(stack)
        losses = make_losses(stack)
        limit = len(losses) * (self._iteration_limit(solver) + 1)
        task = self._init_callback_context(max_subtasks=limit)
        task.call_on_fit_task_begin(estimator=self, X=X, y=y)
        observer = self._observer(task, X, y)
        solutions = [self._minimize(loss, solver, observer, stack.names) for loss in losses]
        solution = self._as_returned(_joined(solutions, self.tol), stack)
        self._record(solution, solver)
        self._warn_unless_converged(solution, solver, observer)
        self._keep_machine(stack, transform, losses, solutions)
        task.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def _as_returned(self, solution: Solution, stack: KernelStack) -> Solution:
        """The solution with the certificate of the machine that is kept."""
        return solution

    def _keep_machine(
        self, stack: KernelStack, transform: Any, losses: list[BoxLoss], solutions: list[Solution]
    ) -> None:
        evaluations: list[Any] = [solution.evaluation for solution in solutions]
        dual = np.hstack([evaluation.coefficients for evaluation in evaluations])
        dual[np.abs(dual) <= _NOTHING * np.abs(dual).max(initial=0.0)] = 0.0
        weights = np.array(
            [loss.kernel_weights(s.weights) for loss, s in zip(losses, solutions, strict=True)]
        )
        self.intercept_ = np.concatenate(
            [
                _uncentred_biases(stack, own, evaluation)
                for own, evaluation in zip(weights, evaluations, strict=True)
            ]
        )
        if self._shift_invariant:
            # What prediction does in the place of centring, which would need all samples.
            transform.steps.append(FromMean().fit(stack))
        self.weights_ = weights if len(weights) > 1 else weights[0]
        support = np.flatnonzero(dual.any(axis=1))
        # A machine without support vectors is a constant; one sample keeps shapes alive.
        rows = support if len(support) else np.array([0])
        self.support_ = self._kept_rows[support].astype(np.int32)
        self.dual_coef_ = np.ascontiguousarray(dual[support].T)
        self._coefficients = dual[rows]
        self._remember_kernels(stack, weights.max(axis=0), transform, rows)
        if not self._is_precomputed:
            self.support_vectors_ = safe_indexing(self.X_fit_, np.arange(len(support)))

    def _scores(self, X: Any) -> np.ndarray:
        """``Σ_j weights_j K_j(X, support vectors) @ coefficients``, (n_rows, n_outputs)."""
        check_is_fitted(self, "dual_coef_")
        if self.weights_.ndim == 1:
            return self._project(X, self._coefficients)
        # Each output has weights of its own.
        n_rows, blocks = self._test_blocks(X)
        scores = np.empty((n_rows, self._coefficients.shape[1]))
        weights = self.weights_[:, self._active]
        for rows, stack in blocks:
            products = self._transform.transform(stack).apply(self._coefficients)
            scores[rows] = np.einsum("kj,jrk->rk", weights, products)
        return scores


class FromMean(StackTransform):
    """Measure every row from its mean over the columns.

    Coefficients that sum to zero do not see it, but where they do so up to rounding only, large
    entries would.
    """

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: Any) -> None:
        """Nothing to learn."""

    def _transform(self, stack: KernelStack) -> KernelStack:
        n_columns = stack.shape[1]
        means = stack.apply(np.full((n_columns, 1), 1.0 / n_columns))[:, :, 0]
        return stack.shifted(means, np.zeros((stack.n_kernels, n_columns)))


def _uncentred_biases(stack: KernelStack, weights: np.ndarray, evaluation: Any) -> np.ndarray:
    """b of machines on the kernels before centring.

    ``Σ_l v_l (K_j(r, l) − o_j(r) − o_j(l)) = Σ_l v_l K_j(r, l) − o_j·v`` where ``Σ v_l = 0``.
    """
    biases: np.ndarray = evaluation.biases
    if not stack.centered or stack.col_offset is None:
        return biases
    return biases - weights @ (stack.col_offset @ evaluation.coefficients)


def _joined(solutions: list[Solution], tol: float) -> Solution:
    """Solutions of independent problems as one: sums of bounds, one history after the other."""
    if len(solutions) == 1:
        return solutions[0]
    parts = [solution.certificate for solution in solutions]
    primal, dual = sum(part.primal for part in parts), sum(part.dual for part in parts)
    points = [part.dual_point for part in parts if part.dual_point is not None]
    return Solution(
        weights=np.concatenate([solution.weights for solution in solutions]),
        certificate=Certificate(
            primal,
            dual,
            primal - dual,
            tol,
            sum(part.rounding for part in parts),
            np.hstack(points) if len(points) == len(parts) else None,
        ),
        evaluation=solutions[0].evaluation,
        n_iter=sum(solution.n_iter for solution in solutions),
        n_inner_solves=sum(solution.n_inner_solves for solution in solutions),
        history=[step for solution in solutions for step in solution.history],
        status="; ".join(filter(None, (solution.status for solution in solutions))),
    )

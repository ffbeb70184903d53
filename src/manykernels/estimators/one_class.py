"""MKOneClassSVM: which samples belong to what was seen, by several kernels."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.callback import with_callbacks

from .._sklearn import Interval
from ..kernels import KernelStack
from ..losses import BoxLoss, OneClassLoss, Outline
from ..solvers import Solution
from ._fitting import all_or_nothing
from ._outputs import InsideOrOutside, widening
from ._support import INNER_SHARE, SupportVectorMachine


class MKOneClassSVM(InsideOrOutside, OutlierMixin, SupportVectorMachine):
    """ℓp-norm multiple kernel one-class support vector machine.

    Learns one weight per kernel along with a half-space that holds most samples and stays away
    from the origin of the feature space of the weighted sum. With one kernel and
    ``normalize=None`` it is scikit-learn's ``OneClassSVM``.

    The best weights are those by which the half-space is *furthest* from the origin: kernels
    under which samples look alike. At p = 1 that is often one, the widest; larger p mix more.

    Parameters
    ----------
    kernels : kernel, KernelUnion, dict, list of (name, kernel), "precomputed" or None, optional
        What is compared, as for :class:`MKFDA`.
    p : float in [1, inf], default=2.0
        Norm of the weights: 1 gives the fewest kernels, inf the plain sum.
    nu : float in (0, 1], default=0.5
        At most this share of the training samples is left outside, and at least this share are
        support vectors.
    solver : str or a solver object, default="newton"
        As for :class:`MKSVC`.
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
    tol : float, default=1e-4
        Relative duality gap at which to stop.
    max_iter : int, optional
        Most outer iterations; by default what the solver usually needs.
    verbose : bool, default=False
        Print a line per outer iteration.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
    kernel_names_ : list of str
    certificate_ : Certificate
    support_ : ndarray of int
        Row numbers of the support vectors.
    n_support_ : ndarray of shape (1,)
    support_vectors_ : table
        Their rows, unless precomputed.
    dual_coef_ : ndarray of shape (1, n_support)
        α, which sum to ``nu`` times the number of samples.
    intercept_ : ndarray of shape (1,)
    offset_ : float
        ``−intercept_``: ``decision_function = score_samples − offset_``.
    n_iter_, n_svm_solves_, solver_, history_, union_
        As for :class:`MKSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKOneClassSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> model = MKOneClassSVM(nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]])
    array([ 1, -1])
    """

    # The origin matters here, so a kernel is not the same with a constant added.
    _shift_invariant = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SupportVectorMachine._parameter_constraints,
        "nu": [Interval(Real, 0, 1, closed="right")],
    }

    def __init__(
        self,
        kernels: Any = None,
        *,
        p: float = 2.0,
        nu: float = 0.5,
        solver: Any = "newton",
        normalize: str | None = "multiplicative",
        tol: float = 1e-4,
        max_iter: int | None = None,
        verbose: bool = False,
    ):
        self.kernels = kernels
        self.p = p
        self.nu = nu
        self.solver = solver
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the machine.

        Parameters
        ----------
        X : array-like, dataframe, sparse matrix, or KernelStack if precomputed
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A weight of two counts as a repeated sample, zero as none.
            What is rounding beside the median of the weights counts as zero; a weight of more than
            1e12 times the median is refused.
        """
        self._validate_params()
        data = self._read_training(X)
        data, _, mass = self._weighted_rows(data, None, sample_weight)

        def losses(stack: KernelStack) -> list[BoxLoss]:
            return [OneClassLoss(stack, self.nu, mass, INNER_SHARE * self.tol)]

        self._fit_machine(X, y, data, mass, losses)
        self.n_support_ = np.array([len(self.support_)], dtype=np.int32)
        return self

    def _as_returned(self, solution: Solution, stack: KernelStack) -> Solution:
        """With what the boundary is moved by for rounding: that costs b Σα, losses only fall."""
        evaluation: Any = solution.evaluation
        total = float(evaluation.coefficients.sum())
        shift = widening(evaluation.biases, _size_of_scores(stack, solution.weights, total))
        rounding = solution.certificate.rounding + float(shift[0]) * total
        return replace(solution, certificate=replace(solution.certificate, rounding=rounding))

    def _keep_machine(self, stack: Any, transform: Any, losses: Any, solutions: Any) -> None:
        super()._keep_machine(stack, transform, losses, solutions)
        self._set_offset(_size_of_scores(stack, self.weights_, float(self.dual_coef_.sum())))

    def _outline(self, n_samples: int, n_kernels: int) -> Outline:
        return Outline(OneClassLoss, n_samples, n_kernels, 1)


def _size_of_scores(stack: Any, weights: np.ndarray, total: float) -> float:
    return float((weights @ stack.row_diag).max()) * total

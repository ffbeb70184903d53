"""MKSVR: ℓp-norm multiple kernel support vector regression."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks

from .._sklearn import Interval
from ..kernels import KernelStack
from ..losses import BoxLoss, EpsilonInsensitiveLoss, Outline
from ._fitting import all_or_nothing
from ._support import INNER_SHARE, SupportVectorMachine


class MKSVR(RegressorMixin, SupportVectorMachine):
    """ℓp-norm multiple kernel support vector regression.

    Learns one weight per kernel along with an ε-insensitive regression on the weighted sum. With
    one kernel and ``normalize=None`` it is scikit-learn's ``SVR``.

    Parameters
    ----------
    kernels : kernel, KernelUnion, dict, list of (name, kernel), "precomputed" or None, optional
        What is compared, as for :class:`MKFDA`.
    p : float in [1, inf], default=2.0
        Norm of the weights: 1 gives the fewest kernels, inf the plain sum.
    C : float, default=1.0
        Penalty of deviations beyond ε, acting on the kernels after `normalize`.
    epsilon : float, default=0.1
        Deviations up to this cost nothing.
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
        ``α⁺ − α⁻``.
    intercept_ : ndarray of shape (1,)
    n_iter_, n_svm_solves_, solver_, history_, union_
        As for :class:`MKSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import MKSVR
    >>> from manykernels.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (200, 2))
    >>> y = np.sin(2 * X[:, 0])
    >>> kernels = [("first", RBF(1.0).on([0])), ("second", RBF(1.0).on([1]))]
    >>> model = MKSVR(kernels, p=1, C=10.0, epsilon=0.05).fit(X, y)
    >>> dict(zip(model.kernel_names_, model.weights_.round(2).tolist()))
    {'first': 1.0, 'second': 0.0}
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SupportVectorMachine._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "epsilon": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        kernels: Any = None,
        *,
        p: float = 2.0,
        C: float = 1.0,
        epsilon: float = 0.1,
        solver: Any = "newton",
        normalize: str | None = "multiplicative",
        tol: float = 1e-4,
        max_iter: int | None = None,
        verbose: bool = False,
    ):
        self.kernels = kernels
        self.p = p
        self.C = C
        self.epsilon = epsilon
        self.solver = solver
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the machine.

        Parameters
        ----------
        X : array-like, dataframe, sparse matrix, or KernelStack if precomputed
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C; a weight of two counts as a repeated sample, zero as none.
            What is rounding beside the median of the weights counts as zero; a weight of more than
            1e12 times the median is refused.
        """
        self._validate_params()
        data, targets, mass = self._targeted_rows(X, y, sample_weight)
        penalties = self.C * (np.ones(len(targets)) if mass is None else mass)

        def losses(stack: KernelStack) -> list[BoxLoss]:
            inner_tol = INNER_SHARE * self.tol
            return [EpsilonInsensitiveLoss(stack, targets, penalties, self.epsilon, inner_tol)]

        self._fit_machine(X, y, data, mass, losses)
        self.n_support_ = np.array([len(self.support_)], dtype=np.int32)
        return self

    def _outline(self, n_samples: int, n_kernels: int) -> Outline:
        return Outline(EpsilonInsensitiveLoss, n_samples, n_kernels, 1)

    def predict(self, X: Any) -> np.ndarray:
        """Value of each row."""
        return self._scores(X)[:, 0] + self.intercept_[0]

"""LocalizedOneClassSVM: kernels that count in different regions, for novelty detection."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin

from .._sklearn import Interval, num_samples
from ..gating.machines import BoxMachine
from ..losses.hinge import one_class_problem
from ._fitting import all_or_nothing
from ._localized import LocalizedMachine
from ._outputs import InsideOrOutside


class LocalizedOneClassSVM(InsideOrOutside, OutlierMixin, LocalizedMachine):
    """One-class support vector machine with kernels weighted differently in different regions.

    Parameters
    ----------
    kernels : kernel, KernelUnion, dict, list of (name, kernel), "precomputed" or None, optional
        What is compared, as for :class:`MKFDA`. Several copies of one kernel are normal use: each
        gets a region of its own.
    gating : {"softmax", "sigmoid", "gaussian"} or a gate, default="softmax"
        How much a kernel counts at a sample: competing kernels (softmax, gaussian) or ones that
        may work together (sigmoid). See :mod:`manykernels.gating`.
    gating_features : None, columns, int, transformer or kernel, default=None
        What the gate looks at: all columns, some of them, principal components, what a
        transformer makes of X, or similarities with the training samples. With precomputed
        kernels, the name of one of them (similarities by it), or all of this for the table of
        :meth:`KernelStack.with_features`.
    nu : float in (0, 1], default=0.5
        At most this share of the training samples is left outside.
    n_init : int, default=1
        Random starts; the lowest objective is kept.
    normalize : {"spherical", "multiplicative", "trace"} or None, default="spherical"
        How kernels are made comparable; by default every sample has length one.
    quasi_newton : bool, default=False
        Steps of L-BFGS on the gate instead of the paper's gradient steps: far fewer of them to a
        given objective.
    gate_tol : float, default=1e-6
        A kernel is evaluated for a prediction only where both gates are above this.
    tol : float, default=1e-2
        Relative change of the objective at which to stop, seen twice. A gate can fit single
        samples: smaller values and quasi-Newton steps lower the objective further, and on most
        data raise the error on new samples.
    max_iter : int, default=200
        Most steps on the gate.
    random_state : int, RandomState or None, default=None
        Of the starts.
    verbose : bool, default=False
        Print a line per step.

    Attributes
    ----------
    n_support_ : ndarray of shape (1,)
    offset_ : float
        ``decision_function = score_samples − offset_``.
    gating_coef_ : dict of ndarray
        Parameters of the gate, on standardised gating features.
    certificate_ : StationarityCertificate
        Gradient norm of the gate and duality gap of the machine: of a local minimum.
    objective_ : float
        J at the end.
    history_ : dict of list
        J (``objective``) and its relative ``gradient_norm`` at the start and after every step of
        the best start, and the machines trained until then (``n_inner_solves``).
    restart_objectives_ : list of float
        J at the end of every start.
    n_iter_ : int
        Steps on the gate from the best start.
    n_inner_solves_ : int
        Machines trained in all.
    finished_ : bool
        False after an interruption (Ctrl-C), which leaves the best model so far.
    kernel_names_ : list of str
    support_ : ndarray of int
        Row numbers of the support vectors.
    support_vectors_ : table
        Their rows, unless precomputed.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
    intercept_ : ndarray of shape (n_outputs,)

    References
    ----------
    M. Gönen, E. Alpaydın. Localized algorithms for multiple kernel learning. Pattern Recognition
    46, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedOneClassSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 2))
    >>> model = LocalizedOneClassSVM(nu=0.1, random_state=0).fit(X)
    >>> model.predict([[0.0, 0.0]])
    array([1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LocalizedMachine._parameter_constraints,
        "nu": [Interval(Real, 0, 1, closed="right")],
    }

    def __init__(
        self,
        kernels: Any = None,
        *,
        gating: Any = "softmax",
        gating_features: Any = None,
        nu: float = 0.5,
        n_init: int = 1,
        normalize: str | None = "spherical",
        quasi_newton: bool = False,
        gate_tol: float = 1e-6,
        tol: float = 1e-2,
        max_iter: int = 200,
        random_state: Any = None,
        verbose: bool = False,
    ):
        self.kernels = kernels
        self.gating = gating
        self.gating_features = gating_features
        self.nu = nu
        self.n_init = n_init
        self.normalize = normalize
        self.quasi_newton = quasi_newton
        self.gate_tol = gate_tol
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the gate and the machine.

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
        weights = np.ones(num_samples(data)) if mass is None else mass
        self._fit_gates(data, mass, [BoxMachine([one_class_problem(weights, self.nu)])])
        self.n_support_ = np.array([len(self.support_)], dtype=np.int32)
        self._set_offset()
        return self

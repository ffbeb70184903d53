"""LocalizedSVC: kernels that count in different regions, for classification."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from .._sklearn import Interval, StrOptions
from ..gating.machines import BoxMachine, Machine, MulticlassMachine
from ..losses.hinge import hinge_problem
from ._fitting import all_or_nothing
from ._localized import LocalizedMachine
from ._outputs import ClassesByMargin
from ._rows import class_factors


class LocalizedSVC(ClassesByMargin, ClassifierMixin, LocalizedMachine):
    """Support vector classification with kernels weighted differently in different regions.

    A gate, learnt along with the machine, says how much each kernel counts at each sample:
    ``k(x, x') = Σ_p η_p(x) k_p(x, x') η_p(x')``.

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
    C : float, default=1.0
        Penalty of samples inside the margin.
    multi_class : {"shared", "separate", "single"}, default="shared"
        More than two classes: one against the rest with one gate for all, or with a gate for
        each; or a single machine for all classes (section 2.4.2 of the paper).
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class.
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
    classes_ : ndarray of shape (n_classes,)
    n_support_ : ndarray of shape (n_classes,)
        Support vectors by the class they belong to.
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

    Notes
    -----
    With ``multi_class="separate"`` the gates' attributes are lists, one entry per class.

    References
    ----------
    M. Gönen, E. Alpaydın. Localized algorithms for multiple kernel learning. Pattern Recognition
    46, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVC
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> y = X[:, 1] > np.abs(X[:, 0])  # a corner: one straight line on each side
    >>> lines = [("left", Linear()), ("right", Linear())]
    >>> model = LocalizedSVC(lines, C=10.0, normalize=None, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LocalizedMachine._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "multi_class": [StrOptions({"shared", "separate", "single"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        kernels: Any = None,
        *,
        gating: Any = "softmax",
        gating_features: Any = None,
        C: float = 1.0,
        multi_class: str = "shared",
        class_weight: Any = None,
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
        self.C = C
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.n_init = n_init
        self.normalize = normalize
        self.quasi_newton = quasi_newton
        self.gate_tol = gate_tol
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the gate and the machine.

        Parameters
        ----------
        X : array-like, dataframe, sparse matrix, or KernelStack if precomputed
        y : array-like of shape (n_samples,)
            Class labels of any kind.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C.
            What is rounding beside the median of the weights counts as zero; a weight of more than
            1e12 times the median is refused.
        """
        self._validate_params()
        data, y, labels, mass = self._labelled_rows(X, y, sample_weight)
        counts = np.ones(len(y)) if mass is None else mass
        penalties = self.C * counts * class_factors(self.class_weight, y, labels, counts)
        self._fit_gates(data, mass, self._machines(labels, penalties), y)
        own = np.searchsorted(self._kept_rows, self.support_)
        self.n_support_ = np.bincount(labels[own], minlength=len(self.classes_)).astype(np.int32)
        return self

    def _machines(self, labels: np.ndarray, penalties: np.ndarray) -> list[Machine]:
        n_classes = len(self.classes_)
        if n_classes == 2:
            return [BoxMachine([hinge_problem(np.where(labels == 1, 1.0, -1.0), penalties)])]
        if self.multi_class == "single":
            return [MulticlassMachine(labels, penalties, n_classes)]
        signs = np.where(labels == np.arange(n_classes)[:, None], 1.0, -1.0)
        problems = [hinge_problem(column, penalties) for column in signs]
        if self.multi_class == "separate":
            return [BoxMachine([problem]) for problem in problems]
        return [BoxMachine(problems)]

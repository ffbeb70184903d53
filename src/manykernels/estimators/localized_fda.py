"""LocalizedFDA: kernels that count in different regions, for Fisher's discriminant."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from .._sklearn import Interval, StrOptions
from ..gating.learning import LearntGates
from ..gating.machines import SquareMachine
from ._discriminant import fisher_targets
from ._fitting import all_or_nothing
from ._kernel_discriminant import KernelDiscriminant
from ._localized import LocalizedMachine
from ._probabilities import GivesProbabilities
from ._rows import class_factors
from ._rules import Decision, folds_for_rules


class LocalizedFDA(GivesProbabilities, ClassifierMixin, LocalizedMachine):
    """Kernel Fisher discriminant with kernels weighted differently in different regions.

    The square loss in the place of the hinge loss of :class:`LocalizedSVC`, which the paper's
    remark on other kernel machines allows. Classes are judged as by :class:`MKFDA`, but the gate
    is held while samples are left out: probabilities can be too sure where a gate has learnt
    single samples.

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
    reg : float, default=0.1
        λ > 0 of the discriminant.
    class_weight : dict, "balanced" or None, default=None
        Factors of sample weights by class.
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
    priors_ : ndarray of shape (n_classes,)
    rule_ : {"indicator", "discriminant"}
        How class scores are made of the outputs, as for :class:`MKFDA`.
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
    >>> from manykernels import LocalizedFDA
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> y = X[:, 1] > np.abs(X[:, 0])
    >>> lines = [("left", Linear()), ("right", Linear())]
    >>> model = LocalizedFDA(lines, normalize=None, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _heaviest = KernelDiscriminant._heaviest
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LocalizedMachine._parameter_constraints,
        "reg": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        kernels: Any = None,
        *,
        gating: Any = "softmax",
        gating_features: Any = None,
        reg: float = 0.1,
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
        self.reg = reg
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
        """Learn the gate and the discriminant.

        Parameters
        ----------
        X : array-like, dataframe, sparse matrix, or KernelStack if precomputed
        y : array-like of shape (n_samples,)
            Class labels of any kind.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of two counts as a repeated sample, zero as none.
            What is rounding beside the median of the weights counts as zero; a weight of more than
            1e6 times the median is refused.
        """
        self._validate_params()
        data, y, labels, mass = self._labelled_rows(X, y, sample_weight)
        weights, n_classes = mass, len(self.classes_)
        if (len(labels) if mass is None else mass.sum()) <= n_classes == len(labels):
            raise ValueError(
                f"LocalizedFDA needs more samples than classes: {len(labels)} samples of "
                f"{n_classes} classes leave no spread within classes."
            )
        if self.class_weight is not None:
            counts = np.ones(len(y)) if mass is None else mass
            weights = counts * class_factors(self.class_weight, y, labels, counts)
        masses = np.bincount(labels, weights=weights).astype(float)
        self.priors_ = masses / masses.sum()
        self._labels, self._multiplicity = labels, mass
        self._machine = SquareMachine(fisher_targets(labels, masses), float(self.reg), weights)
        self._fit_gates(data, mass, [self._machine], y)
        del self._labels, self._multiplicity, self._machine
        return self

    def _remember_machines(self, learnt: LearntGates) -> None:
        machine, K = self._machine, learnt.points[0].kernel
        loss, evaluation = machine.evaluate(K)
        folds = folds_for_rules(self._labels, loss.kernels)
        left_out = evaluation.leave_out(folds, self._multiplicity, None)
        mass = self._multiplicity
        decision = Decision.learn(
            left_out.turned(loss.rotation),
            self._labels,
            machine.sample_weight,
            self.priors_,
            loss.rotation,
            float(len(K) if mass is None else mass.sum()),
        )
        self.rule_ = decision.rule.name
        dual_coef = decision.coefficients(evaluation.coefficients @ loss.rotation)
        weight = np.ones(len(K)) if machine.sample_weight is None else machine.sample_weight
        # Coefficients sum to zero, so that centring takes the same from every new sample.
        means = K @ weight / weight.sum()
        self.intercept_ = decision.intercept - means @ dual_coef
        self._set_coefficients(dual_coef)

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second class (n_rows,), or scores of all classes (n_rows, n_classes)."""
        scores = self._scores(X) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

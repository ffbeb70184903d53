"""LocalizedSVC and the other estimators that learn a gate with the kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..discriminant import Decision, fisher_targets, indicator_rule
from ..gating.descent import ClassJudge, GateLearning, Judge, ValueJudge
from ..gating.gates import Gate
from ..gating.objective import BoxMachine, Machine, MulticlassMachine, SquareMachine
from ..kernels import KernelStack
from ..kernels.tables import Table
from ..kernels.transforms import Center, Chain
from ..losses.svm import epsilon_insensitive_problem, hinge_problem, one_class_problem
from ..utils.sklearn import StrOptions
from ..utils.storable import storable
from .base import CLASS_WEIGHT, POSITIVE, FitTask, estimator, fits
from .fda import FisherTask
from .gated import DescentAttributes, GatedGrid, GatedKernels, GateParameters, gate_penalties
from .grid import MACHINE_NORMS, Grid, checked_non_negative, checked_norms, checked_positive
from .held_out import CalibrationAttributes
from .kernel_data import KernelData
from .prediction import (
    EpsilonParameters,
    KernelClassifier,
    KernelRegressor,
    NoveltyDetector,
    boundary_shift,
)
from .search import ChoiceParameters, Search, validation_curve
from .svm import SupportAttributes
from .svm_cv import DEFAULT_WIDTHS, REGRESSION_PENALTIES
from .training_rows import (
    TrainingRows,
    discriminant_rows,
    labelled_rows,
    one_against_rest,
    spread_of_targets,
    targeted_rows,
    unlabelled_rows,
)


@storable
@estimator(DescentAttributes, SupportAttributes)
class LocalizedSVC(GateParameters, KernelClassifier):
    """Support vector classification with kernels weighted differently in different regions.

    A gate, learnt along with the machine, says how much each kernel counts at each sample:
    ``k(x, x') = Σ_p η_p(x) k_p(x, x') η_p(x')``.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of samples inside the margin.
    multi_class : {"shared", "separate", "single"}, default="shared"
        More than two classes: one against the rest with one gate for all, or with a gate for
        each; or a single machine for all classes (section 2.4.2 of the paper).
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class.

    Notes
    -----
    With ``multi_class="separate"`` and more than two classes, `gating_coef_` and
    `restart_objectives_` are lists, one entry per class.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVC
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> y = X[:, 1] > np.abs(X[:, 0])  # a corner: one straight line on each side
    >>> lines = [("left", Linear()), ("right", Linear())]
    >>> model = LocalizedSVC(lines, C=10.0, normalize=None).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    C: float = 1.0
    multi_class: str = "shared"
    class_weight: dict[Any, float] | str | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": POSITIVE,
        "multi_class": [StrOptions({"shared", "separate", "single"})],
        "class_weight": CLASS_WEIGHT,
    }

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the gate and the machine."""
        learning = GateLearning.of(self)
        rows = labelled_rows(self, X, y, sample_weight, self.class_weight, groups=groups)
        machines = self._machines(rows)
        task = FitTask.begin(self, X, y, learning.max_progress(len(machines)))
        kernels = GatedKernels.of(rows, self.normalize, learning.gate)
        learnt = kernels.learn(learning, machines, self._judges(rows), task)
        return self._keep(task, kernels.attributes(rows, learnt, learnt.dual, learnt.biases))

    def _machines(self, rows: TrainingRows) -> list[Machine]:
        """Return one machine for every gate."""
        penalties = self.C * rows.factors
        machine = gated_machine(rows, penalties, single=self.multi_class == "single")
        if self.multi_class == "separate" and isinstance(machine, BoxMachine):
            return [BoxMachine([problem]) for problem in machine.problems]
        return [machine]

    def _judges(self, rows: TrainingRows) -> list[Judge]:
        """Return a judge for every gate."""
        judge = ClassJudge.of(rows.labels, len(rows.classes), rows.counts, rows.groups)
        if len(rows.classes) > 2 and self.multi_class == "separate":
            return [judge.one_against_rest(k) for k in range(len(rows.classes))]
        return [judge]


def gated_machine(rows: TrainingRows, penalties: np.ndarray, *, single: bool = False) -> Machine:
    """Return machines of one class against the rest, or a `single` one of several classes."""
    n_classes = len(rows.classes)
    if single and n_classes > 2:
        return MulticlassMachine(rows.labels, penalties, n_classes)
    columns = one_against_rest(rows.labels, n_classes).T
    return BoxMachine([hinge_problem(signs, penalties) for signs in columns])


# -- LocalizedSVR: kernels that count in different regions, for regression ------------------------


@storable
@estimator(EpsilonParameters, DescentAttributes, SupportAttributes)
class LocalizedSVR(GateParameters, KernelRegressor):
    """Support vector regression with kernels weighted differently in different regions.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVR
    >>> from manykernels.kernels import Linear
    >>> x = np.linspace(-1, 1, 80)[:, None]
    >>> y = np.abs(x[:, 0])  # two straight lines
    >>> lines = [("falling", Linear()), ("rising", Linear())]
    >>> model = LocalizedSVR(lines, C=10.0, epsilon=0.01, normalize=None)
    >>> bool(model.fit(x, y).score(x, y) > 0.98)
    True
    """

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the gate and the machine."""
        learning = GateLearning.of(self)
        rows = targeted_rows(self, X, y, sample_weight, groups=groups)
        task = FitTask.begin(self, X, y, learning.max_progress(1))
        problem = epsilon_insensitive_problem(rows.targets, self.C * rows.factors, self.epsilon)
        kernels = GatedKernels.of(rows, self.normalize, learning.gate)
        judge = ValueJudge(rows.targets, rows.counts, rows.groups)
        learnt = kernels.learn(learning, [BoxMachine([problem])], [judge], task)
        return self._keep(task, kernels.attributes(rows, learnt, learnt.dual, learnt.biases))


# -- LocalizedOneClassSVM: kernels that count in different regions, for novelty detection ---------


@storable
@estimator(DescentAttributes, SupportAttributes)
class LocalizedOneClassSVM(GateParameters, NoveltyDetector):
    """One-class support vector machine with kernels weighted differently in different regions.

    Parameters
    ----------
    gating : {"softmax", "gaussian", "cluster", "instance", "sigmoid"} or a gate, default="softmax"
        As in :class:`LocalizedSVC`, by default of competing kernels: without labels, gates that
        may all open do so where samples are far from the origin, and samples between look like
        outliers.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedOneClassSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 2))
    >>> model = LocalizedOneClassSVM(nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0]])
    array([1])
    """

    gating: str | Gate = "softmax"

    @fits
    def fit(
        self, X: Table, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn the gate and the machine."""
        learning = GateLearning.of(self)
        rows = unlabelled_rows(self, X, sample_weight)
        task = FitTask.begin(self, X, y, learning.max_progress(1))
        machine = BoxMachine([one_class_problem(rows.factors, self.nu)])
        kernels = GatedKernels.of(rows, self.normalize, learning.gate)
        learnt = kernels.learn(learning, [machine], [], task)
        (point,) = learnt.points
        size = float(point.kernel.diagonal().max() * learnt.dual.sum())
        intercept = learnt.biases + boundary_shift(learnt.biases, size)
        fitted = kernels.attributes(rows, learnt, learnt.dual, intercept)
        return self._keep(task, fitted, offset_=-float(intercept[0]))


# -- LocalizedFDA: kernels that count in different regions, for Fisher's discriminant -------------


@storable
@estimator(DescentAttributes, SupportAttributes)
class LocalizedFDA(GateParameters, KernelClassifier):
    """Kernel Fisher discriminant with kernels weighted differently in different regions.

    :class:`LocalizedSVC` with the square loss in the place of the hinge loss; the paper remarks
    that other kernel machines can be used. Class scores and probabilities are those of
    :class:`MKFDA`, but the gate is held fixed while samples are left out: probabilities can be
    too sure where a gate has fitted single samples.

    Parameters
    ----------
    reg : float, default=0.1
        λ > 0 of the discriminant.
    class_weight : dict, "balanced" or None, default=None
        Factors of sample weights by class.

    Attributes
    ----------
    priors_ : ndarray of shape (n_classes,)
    rule_ : {"indicator", "discriminant"}
        How class scores are made of the outputs, as for :class:`MKFDA`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedFDA
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> y = X[:, 1] > np.abs(X[:, 0])
    >>> lines = [("left", Linear()), ("right", Linear())]
    >>> model = LocalizedFDA(lines, normalize=None).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    reg: float = 0.1
    class_weight: dict[Any, float] | str | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "reg": POSITIVE,
        "class_weight": CLASS_WEIGHT,
    }

    _probabilities = "scores"

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the gate and the discriminant."""
        learning = GateLearning.of(self)
        rows = discriminant_rows(self, X, y, sample_weight, self.class_weight, groups=groups)
        task = FitTask.begin(self, X, y, learning.max_progress(1))
        kernels = GatedKernels.of(rows, self.normalize, learning.gate)
        samples = kernels.kernels.samples(rows)
        targets = fisher_targets(samples.labels, samples.masses)
        machine = SquareMachine(targets, self.reg, samples.weights)
        rule = indicator_rule(samples.frequencies, np.eye(targets.shape[1]))
        judge = ClassJudge.of(rows.labels, len(rows.classes), rows.counts, rows.groups, rule)
        learnt = kernels.learn(learning, [machine], [judge], task)
        (point,) = learnt.points
        # With the gate held, this is the discriminant of MKFDA on one kernel.
        K = point.kernel
        gated = KernelStack(K[None], ["gated"], gram=True, checked=True)
        data = KernelData.of(replace(samples, stack=gated), Chain([Center()]))
        loss = data.loss_at(data.fisher_coding())(self.reg)
        (regression,) = FisherTask().regressions([data], loss, loss.evaluate(np.ones(1)), None)
        decision = Decision.learn(regression, samples, samples.frequencies)
        dual = decision.coefficients(regression.coefficients)
        # Centring the kernel changes the output of every new sample by the same amount, as the
        # coefficients sum to zero.
        means = K @ rows.factors / rows.factors.sum()
        intercept = decision.intercept - means @ dual
        return self._keep(
            task,
            kernels.attributes(rows, learnt, dual, intercept),
            priors_=samples.frequencies,
            rule_=decision.rule.name,
        )


# -- LocalizedSVCCV: penalties of the machine and of the gate, chosen by cross-validation ---------


#: C by default: wider than for plain weights, because gates and regions of simple kernels need a
#: large one.
LOCALIZED_CS = (0.01, 0.1, 1.0, 10.0, 100.0)


@storable
@estimator(CalibrationAttributes, SupportAttributes, ChoiceParameters)
class LocalizedSVCCV(GateParameters, KernelClassifier):
    """Localized support vector classification with its penalties chosen by cross-validation.

    For every C the gates of decreasing penalties are learnt one from the other, beginning with the
    constant gate of plain multiple kernel learning, and judged on samples that they have not seen.
    The penalties are those of the gate, such as ``gating=Sigmoid(penalty=[np.inf, 0.1, 0.01])``.
    The decision values of held-out samples also tell how to turn decision values into
    probabilities. More than two classes are learnt one against the rest, with one gate for all.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms of the plain weights at which gates start; by default 1, 1.5 and inf.
    Cs : array-like of float, optional
        C to try; by default 0.01, 0.1, 1, 10 and 100.
    cv : None, int, splitter or iterable of splits, default=None
        A number of folds, by default five: shuffled with a fixed seed, with the classes in equal
        parts. Groups and repeated rows stay together, and a class of a single sample is in no test
        part.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class.

    Attributes
    ----------
    p_, C_, penalty_ : float
        The point of the grid with the best score; of equal ones, with the smallest log loss. Of
        points with a gate and no lower score than the best without, that with the least log loss
        of held-out samples is taken, if its loss is less by two standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVCCV
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> y = X[:, 1] > np.abs(X[:, 0])  # a corner: one straight line on each side
    >>> lines = [("left", Linear()), ("right", Linear())]
    >>> model = LocalizedSVCCV(lines, ps=[2], Cs=[1, 10]).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.penalty_ < np.inf)
    (True, True)
    """

    ps: ArrayLike | None = None
    Cs: ArrayLike | None = None
    class_weight: dict[Any, float] | str | None = None
    one_standard_error: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ps": ["array-like", None],
        "Cs": ["array-like", None],
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
        """Choose p, C and the penalty on the gate, then learn from all samples."""
        learning = GateLearning.of_path(self)
        grid = Grid(
            {
                "p": checked_norms(self.ps, MACHINE_NORMS),
                "C": checked_positive(self.Cs, LOCALIZED_CS, "Cs"),
                "penalty": gate_penalties(learning.gate),
            }
        )
        rows = labelled_rows(self, X, y, sample_weight, self.class_weight, groups=groups)
        kernels = GatedKernels.of(rows, self.normalize, learning.gate)
        search = Search.of(self, X, y, rows, kernels.kernels)
        gated = GatedGrid(
            grid, learning, lambda params: gated_machine(rows, params["C"] * rows.factors)
        )
        choice, chosen = search.choose(grid, gated.held_out_outputs(kernels, search))
        learnt = gated.learn(kernels.samples, choice.params, search.task)
        fitted = kernels.attributes(rows, learnt, learnt.dual, learnt.biases)
        return self._keep(search.task, fitted, chosen)


# -- LocalizedSVRCV: penalties of regression and gate, and ε, chosen by cross-validation ----------


@storable
@estimator(SupportAttributes, ChoiceParameters)
class LocalizedSVRCV(GateParameters, KernelRegressor):
    """Localized support vector regression with its penalties and ε chosen by cross-validation.

    For every C and ε the gates of decreasing penalties are learnt one from the other, beginning
    with the constant gate of plain multiple kernel learning, and judged on samples that they have
    not seen. The penalties are those of the gate, such as
    ``gating=Sigmoid(penalty=[np.inf, 0.1, 0.01])``.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms of the plain weights at which gates start; by default 1, 1.5 and inf.
    Cs : array-like of float, optional
        C to try; by default 0.1, 1, 10 and 100 standard deviations of y.
    epsilons : array-like of float, optional
        ε to try; by default 0.01 and 0.1 times the standard deviation of y.
    cv : None, int, splitter or iterable of splits, default=None
        A number of folds, by default five, shuffled with a fixed seed; groups and repeated rows
        stay together.

    Attributes
    ----------
    left_out_predictions_ : ndarray of shape (n_samples,)
        Prediction of each training row by the model without its fold, at the point that is best
        in the other folds: what `left_out_score_` is the score of. NaN in rows that no split
        tests. Not if `cv` is a validation set.
    p_, C_, epsilon_, penalty_ : float
        The point of the grid with the best score; of equal ones, the simplest. Of points with a
        gate and no lower score than the best without, that with the least square error of held-out
        samples is taken, if it is less by two standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVRCV
    >>> from manykernels.kernels import Linear
    >>> x = np.linspace(-1, 1, 80)[:, None]
    >>> lines = [("falling", Linear()), ("rising", Linear())]
    >>> model = LocalizedSVRCV(lines, ps=[2], Cs=[10], epsilons=[0.03])
    >>> model = model.fit(x, np.abs(x[:, 0]))
    >>> bool(model.score(x, np.abs(x[:, 0])) > 0.95), bool(model.penalty_ < np.inf)
    (True, True)
    """

    ps: ArrayLike | None = None
    Cs: ArrayLike | None = None
    epsilons: ArrayLike | None = None
    one_standard_error: ClassVar[bool] = False

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
        """Choose p, C, ε and the penalty on the gate, then learn from all samples."""
        learning = GateLearning.of_path(self)
        rows = targeted_rows(self, X, y, sample_weight, groups=groups)
        spread = spread_of_targets(rows)
        grid = Grid(
            {
                "p": checked_norms(self.ps, MACHINE_NORMS),
                "C": checked_positive(self.Cs, spread * np.array(REGRESSION_PENALTIES), "Cs"),
                "epsilon": checked_non_negative(
                    self.epsilons, spread * np.array(DEFAULT_WIDTHS), "epsilons"
                ),
                "penalty": gate_penalties(learning.gate),
            }
        )
        kernels = GatedKernels.of(rows, self.normalize, learning.gate)
        search = Search.of(self, X, y, rows, kernels.kernels)
        gated = GatedGrid(grid, learning, lambda params: _machine(rows, params))
        choice, chosen = search.choose(grid, gated.held_out_outputs(kernels, search))
        learnt = gated.learn(kernels.samples, choice.params, search.task)
        fitted = kernels.attributes(rows, learnt, learnt.dual, learnt.biases)
        return self._keep(search.task, fitted, chosen)


def _machine(rows: TrainingRows, params: dict[str, float]) -> Machine:
    penalties = params["C"] * rows.factors
    return BoxMachine([epsilon_insensitive_problem(rows.targets, penalties, params["epsilon"])])

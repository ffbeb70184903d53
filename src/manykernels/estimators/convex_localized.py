"""ConvexLocalizedSVC and the other estimators with kernel weights for every region."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..discriminant import checked_priors, fisher_targets, indicator_rule
from ..gating.descent import ClassJudge, ValueJudge
from ..gating.objective import SquareMachine
from ..kernels.tables import Table
from ..kernels.transforms import Center
from ..losses.base import ProblemSpec
from ..losses.square import SquareLoss
from ..losses.svm import EpsilonInsensitiveLoss
from ..solvers.base import DEFAULT_SOLVER
from ..utils.sklearn import StrOptions
from ..utils.storable import storable
from .base import CLASS_WEIGHT, POSITIVE, FitTask, estimator, fits
from .fda import FisherTask
from .grid import MACHINE_NORMS, Grid, checked_non_negative, checked_norms, checked_positive
from .held_out import CalibrationAttributes
from .kernel_data import KernelData, TrainingKernels
from .learning import learn
from .localized import LOCALIZED_CS
from .prediction import EpsilonParameters, KernelClassifier, KernelDiscriminant, KernelRegressor
from .regional import (
    KernelsByRegion,
    RegionAttributes,
    RegionGridParameters,
    RegionParameters,
    Regions,
    SharpnessChoice,
    region_grid,
)
from .search import ChoiceParameters, ChosenWeights, Search, validation_curve
from .svm import (
    INNER_SHARE,
    LOSSES,
    ClassMachines,
    LearntMachine,
    MachineKernels,
    SupportAttributes,
    machine_groups,
)
from .svm_cv import DEFAULT_WIDTHS, REGRESSION_PENALTIES, ValueMachines, held_out_outputs
from .training_rows import discriminant_rows, labelled_rows, spread_of_targets, targeted_rows
from .weights import WeightLearning, WeightParameters


@storable
@estimator(SupportAttributes, RegionAttributes, WeightParameters)
class ConvexLocalizedSVC(RegionParameters, KernelClassifier):
    """Support vector classification with kernel weights for every region of the samples.

    Regions are found first, without labels; a sample may have shares in several. Each has a weight
    per kernel, ``‖weights_[l]‖_p ≤ 1``, learnt along with one machine for all regions. Unlike the
    gates of :class:`LocalizedSVC` this is a convex problem: the weights are the best ones for
    these regions, up to the gap of the certificate. With one region it is :class:`MKSVC`.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of samples inside the margin, acting on the kernels after `normalize`.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        As for :class:`MKSVC`.
    multi_class : {"shared", "separate"}, default="shared"
        More than two classes are learnt one against the rest, with the same weights for all
        classes or some for each: then `weights_` is (n_classes, n_regions, n_kernels).
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class.

    Notes
    -----
    From a kernel k each region l gets ``√(s_l(x) s_l(x')) k(x, x')``, with s the shares that sum
    to one; see :mod:`manykernels.gating.regions`. Regions that are found from kernels need the
    kernels of new samples with all training samples, not only with support vectors.

    Examples
    --------
    Labels that follow one column on the left, and another one on the right:

    >>> import numpy as np
    >>> from manykernels import ConvexLocalizedSVC
    >>> from manykernels.gating import KernelRegions
    >>> from manykernels.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> side = np.repeat([-3.0, 3.0], 100)
    >>> y = np.where(side < 0, X[:, 0], X[:, 1]) > 0
    >>> X = np.column_stack([side, X])
    >>> kernels = [("place", RBF().on([0])), ("a", RBF().on([1])), ("b", RBF().on([2]))]
    >>> regions = KernelRegions(2, sharpness=4)
    >>> model = ConvexLocalizedSVC(kernels, regions=regions, p=1).fit(X, y)
    >>> model.weights_.shape, model.certificate_.converged
    ((2, 3), True)
    >>> sorted(model.kernel_names_[j] for j in model.weights_.argmax(axis=1))
    ['a', 'b']
    """

    C: float = 1.0
    loss: str = "hinge"
    multi_class: str = "shared"
    class_weight: dict[Any, float] | str | None = None
    solver: ClassVar[str] = DEFAULT_SOLVER

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": POSITIVE,
        "loss": [StrOptions(set(LOSSES))],
        "multi_class": [StrOptions({"shared", "separate"})],
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
        """Find regions, learn kernel weights and the machine."""
        learning = WeightLearning.of(self)
        rows = labelled_rows(self, X, y, sample_weight, self.class_weight, groups=groups)
        machines = machine_groups(rows.labels, len(rows.classes), self.multi_class)
        make_loss, n_outputs = LOSSES[self.loss], machines.shape[2]
        regions = Regions.of(self, rows)
        spec = ProblemSpec(make_loss, len(rows), rows.data.n_kernels, n_outputs)
        regions.refuse_unfit(learning, spec)
        task = FitTask.begin(self, X, y, len(machines) * (learning.max_iter + 1))
        plain = regions.kernels(rows, rows.counts, learning.solver)
        penalties, inner_tol = self.C * rows.factors, INNER_SHARE * self.tol

        def losses_of(stack: Any, some: Any) -> list[Any]:
            return [
                make_loss(stack, signs[some], penalties[some], inner_tol) for signs in machines
            ]

        judge = ClassJudge.of(rows.labels, len(rows.classes), rows.counts, rows.groups)
        choice = SharpnessChoice(rows, plain, self.normalize, learning, losses_of, judge)
        regions = choice.of(regions)
        kernels = MachineKernels.prepared(plain, rows, self.normalize, step=regions.step)
        losses = losses_of(kernels.stack, slice(None))
        learning = learning.by_region(kernels.stack.n_regions)
        learnt = learning.learn(losses, kernels.stack.names, task)
        machine = LearntMachine.of(rows, kernels, learnt)
        of_regions = regions.attributes(learnt.weights, plain.stack.names)
        return self._keep(task, machine.attributes, of_regions)


# -- ConvexLocalizedSVR: kernel weights for every region, for support vector regression -----------


@storable
@estimator(EpsilonParameters, SupportAttributes, RegionAttributes, WeightParameters)
class ConvexLocalizedSVR(RegionParameters, KernelRegressor):
    """Support vector regression with kernel weights for every region of the samples.

    :class:`ConvexLocalizedSVC` with the ε-insensitive loss. With one region it is :class:`MKSVR`.

    Examples
    --------
    A function that is smooth on the left, and oscillates on the right:

    >>> import numpy as np
    >>> from manykernels import ConvexLocalizedSVR
    >>> from manykernels.gating import KernelRegions
    >>> from manykernels.kernels import RBF
    >>> X = np.linspace(-2, 2, 200)[:, None]
    >>> y = np.where(X[:, 0] < 0, X[:, 0], np.sin(12 * X[:, 0]))
    >>> kernels = [("wide", RBF(0.3)), ("narrow", RBF(30.0))]
    >>> regions = KernelRegions(2, sharpness=4)
    >>> model = ConvexLocalizedSVR(kernels, regions=regions, p=1, C=10.0).fit(X, y)
    >>> right = model.memberships([[1.5]]).argmax()
    >>> bool(model.weights_[right, 1] > model.weights_[1 - right, 1])
    True
    """

    solver: ClassVar[str] = DEFAULT_SOLVER

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Find regions, learn kernel weights and the machine."""
        learning = WeightLearning.of(self)
        rows = targeted_rows(self, X, y, sample_weight, groups=groups)
        regions = Regions.of(self, rows)
        spec = ProblemSpec(EpsilonInsensitiveLoss, len(rows), rows.data.n_kernels, 1)
        regions.refuse_unfit(learning, spec)
        task = FitTask.begin(self, X, y, learning.max_iter + 1)
        plain = regions.kernels(rows, rows.counts, learning.solver)
        targets, penalties = rows.targets, self.C * rows.factors
        epsilon, inner_tol = self.epsilon, INNER_SHARE * self.tol

        def losses_of(stack: Any, some: Any) -> list[Any]:
            problem = targets[some], penalties[some], epsilon, inner_tol
            return [EpsilonInsensitiveLoss(stack, *problem)]

        judge = ValueJudge(targets, rows.counts, rows.groups)
        choice = SharpnessChoice(rows, plain, self.normalize, learning, losses_of, judge)
        regions = choice.of(regions)
        kernels = MachineKernels.prepared(plain, rows, self.normalize, step=regions.step)
        learning = learning.by_region(kernels.stack.n_regions)
        losses = losses_of(kernels.stack, slice(None))
        learnt = learning.learn(losses, kernels.stack.names, task)
        machine = LearntMachine.of(rows, kernels, learnt)
        of_regions = regions.attributes(learnt.weights, plain.stack.names)
        return self._keep(task, machine.attributes, of_regions)


# -- ConvexLocalizedFDA: kernel weights for every region, for Fisher's discriminant ---------------


@storable
@estimator(RegionParameters, RegionAttributes, WeightParameters)
class ConvexLocalizedFDA(KernelDiscriminant):
    """Fisher discriminant analysis with kernel weights for every region of the samples.

    :class:`ConvexLocalizedSVC` with the square loss, and the class scores and probabilities of
    :class:`MKFDA`, which it is with one region. Regions are those of all samples while samples are
    left out.

    Parameters
    ----------
    reg : float, default=0.1
        λ > 0, acting on the kernels after `normalize` and centring.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with `sample_weight`.
    tol : float, default=1e-6
        Relative duality gap at which the weights are good enough.

    Attributes
    ----------
    reg_ : float
        λ.
    left_out_log_proba_ : ndarray of shape (n_samples, n_classes)
        As of :class:`MKFDA`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import ConvexLocalizedFDA
    >>> from manykernels.gating import KernelRegions
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> y = X[:, 1] > np.abs(X[:, 0])
    >>> regions = KernelRegions(4, sharpness=4)
    >>> model = ConvexLocalizedFDA(Linear(), normalize=None, regions=regions).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.certificate_.converged
    (True, True)
    """

    reg: float = 0.1
    class_weight: dict[Any, float] | str | None = None
    tol: float = 1e-6
    solver: ClassVar[str] = DEFAULT_SOLVER

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "reg": POSITIVE,
        "class_weight": CLASS_WEIGHT,
    }

    set_params = RegionParameters.set_params
    memberships = RegionParameters.memberships
    region_weights = RegionParameters.region_weights

    @fits
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Find regions, learn kernel weights and the discriminant."""
        learning = WeightLearning.of(self)
        rows = discriminant_rows(self, X, y, sample_weight, self.class_weight, groups=groups)
        n_classes = len(rows.classes)
        regions = Regions.of(self, rows)
        n_outputs = 1 if n_classes == 2 else n_classes - 1
        spec = ProblemSpec(SquareLoss, len(rows), rows.data.n_kernels, n_outputs)
        regions.refuse_unfit(learning, spec)
        task = FitTask.begin(self, X, y, learning.max_iter + 1)
        kernels = regions.kernels(rows, rows.weights, learning.solver)
        samples = kernels.samples(rows)
        targets = fisher_targets(samples.labels, samples.masses)
        machine = SquareMachine(targets, self.reg, samples.weights)

        def losses_of(stack: Any, some: Any) -> list[Any]:
            chosen = machine.of(some)
            return [SquareLoss(stack, chosen.targets, chosen.reg, chosen.sample_weight)]

        rule = indicator_rule(samples.frequencies, np.eye(targets.shape[1]))
        judge = ClassJudge.of(rows.labels, n_classes, rows.counts, rows.groups, rule)
        choice = SharpnessChoice(
            rows, kernels, self.normalize, learning, losses_of, judge, samples.weights
        )
        regions = choice.of(regions)
        transform = kernels.preparation(self.normalize, center=False)
        transform.steps += [regions.step, Center()]
        checked_priors(self.priors, samples)
        source = kernels.source
        data = KernelData.of(samples, transform, source, **source.attributes)
        kernels.warn_of_constants(transform)
        fisher = FisherTask(self.reg, priors=self.priors)
        fitted = learn(fisher, data, [learning], [{}], task)
        of_regions = regions.attributes(fitted["weights_"][None], kernels.stack.names)
        return self._keep(task, rows.attributes, fitted, of_regions)


# -- ConvexLocalizedSVCCV: regions and penalties of classification, chosen by cross-validation ----


@storable
@estimator(
    CalibrationAttributes,
    SupportAttributes,
    RegionGridParameters,
    RegionAttributes,
    ChoiceParameters,
    ChosenWeights,
)
class ConvexLocalizedSVCCV(RegionParameters, KernelClassifier):
    """Kernel weights for every region, with the regions and C chosen by cross-validation.

    :class:`ConvexLocalizedSVC` at every point of a grid, judged on samples that neither the
    regions nor the kernel weights and the machines have seen. One region, which is plain multiple
    kernel learning, is among the candidates. The decision values of the samples, at the chosen
    point, also tell how to turn decision values into probabilities.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms to try; by default 1, 1.5 and inf.
    Cs : array-like of float, optional
        C to try; by default 0.01, 0.1, 1, 10 and 100, which suit normalised kernels.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; "balanced" ones are those of each training part.

    Attributes
    ----------
    p_, C_ : float
        The point of the grid with the best score; of equal ones, with the fewest regions, and of
        these with the smallest log loss. Of points with regions and no lower score than the best
        without, that with the least log loss of held-out samples is taken, if it is less by two
        standard errors.

    Notes
    -----
    Kernels are computed once, for all rows: what a kernel takes from the data, such as a width or
    the transformer of ``kernel.after``, is that of all training rows, in every fold. In every fold
    the scales of the kernels, the regions, the weights and the machines come from the training
    part.

    Examples
    --------
    Labels that follow one column on the left, and another one on the right:

    >>> import numpy as np
    >>> from manykernels import ConvexLocalizedSVCCV
    >>> from manykernels.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> side = np.repeat([-3.0, 3.0], 100)
    >>> y = np.where(side < 0, X[:, 0], X[:, 1]) > 0
    >>> X = np.column_stack([side, X])
    >>> kernels = [("place", RBF().on([0])), ("a", RBF().on([1])), ("b", RBF().on([2]))]
    >>> model = ConvexLocalizedSVCCV(kernels, regions=[1, 2], ps=[1], Cs=[1]).fit(X, y)
    >>> model.n_regions_, model.validation_curve().shape
    (2, (2, 2, 1, 1))
    >>> model.predict_proba(X[:1]).shape, model.memberships(X[:1]).shape
    ((1, 2), (1, 2))
    """

    ps: ArrayLike | None = None
    Cs: ArrayLike | None = None
    class_weight: dict[Any, float] | str | None = None
    one_standard_error: ClassVar[bool] = False
    # The losses of ConvexLocalizedSVC by default.
    loss: ClassVar[str] = "hinge"
    multi_class: ClassVar[str] = "shared"

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
        """Choose regions, p and C, then learn from all samples."""
        regions, region_axes = region_grid(self)
        grid = Grid(
            {
                **region_axes,
                "p": checked_norms(self.ps, MACHINE_NORMS),
                "C": checked_positive(self.Cs, LOCALIZED_CS, "Cs"),
            }
        )
        rows = labelled_rows(self, X, y, sample_weight, self.class_weight, groups=groups)
        kernels = TrainingKernels.of(rows, rows.counts, shift_invariant=False)
        search = Search.of(self, X, y, rows, kernels)
        machines = partial(ClassMachines.of, self)
        by_region = KernelsByRegion(grid, regions)
        choice, chosen = search.choose(grid, held_out_outputs(search, grid, machines, by_region))
        learning = WeightLearning.at(self, choice.params["p"])
        best = Regions.found(regions, **{name: choice.params[name] for name in region_axes})
        prepared = MachineKernels.prepared(kernels, rows, self.normalize, step=best.step)
        losses = machines(rows)(prepared.stack, choice.params)
        final = search.task.subtask("final fit", len(losses) * (learning.max_iter + 1))
        learning = learning.by_region(prepared.stack.n_regions)
        learnt = learning.learn(losses, prepared.stack.names, final)
        final.end()
        machine = LearntMachine.of(rows, prepared, learnt)
        of_regions = best.attributes(learnt.weights, kernels.stack.names)
        return self._keep(search.task, machine.attributes, of_regions, chosen)


# -- ConvexLocalizedSVRCV: regions, penalty and ε of regression, chosen by cross-validation -------


@storable
@estimator(
    SupportAttributes, RegionGridParameters, RegionAttributes, ChoiceParameters, ChosenWeights
)
class ConvexLocalizedSVRCV(RegionParameters, KernelRegressor):
    """Regression with weights for every region; regions, C and ε chosen by cross-validation.

    :class:`ConvexLocalizedSVR` at every point of a grid, judged on samples that neither the
    regions nor the kernel weights and the machine have seen. One region, which is plain multiple
    kernel learning, is among the candidates.

    Parameters
    ----------
    ps : array-like of float in [1, inf], optional
        Norms to try; by default 1, 1.5 and inf.
    Cs : array-like of float, optional
        C to try; by default 0.1, 1, 10 and 100 times the standard deviation of y.
    epsilons : array-like of float, optional
        ε to try; by default 0.01 and 0.1 times the standard deviation of y.

    Attributes
    ----------
    left_out_predictions_ : ndarray of shape (n_samples,)
        Prediction of each training row by the model without its fold, at the point that is best
        in the other folds: what `left_out_score_` is the score of. NaN in rows that no split
        tests. Not if `cv` is a validation set.
    p_, C_, epsilon_ : float
        The point of the grid with the best score, of equal ones the simplest. Of points with
        regions and no lower score than the best without, that with the least square error of
        held-out samples is taken, if it is less by two standard errors.

    Notes
    -----
    Kernels are computed once, for all rows: what a kernel takes from the data, such as a width or
    the transformer of ``kernel.after``, is that of all training rows, in every fold. So is the
    standard deviation of y. In every fold the scales of the kernels, the regions, the weights and
    the machine come from the training part.

    Examples
    --------
    Two straight lines, each of which is right on one side:

    >>> import numpy as np
    >>> from manykernels import ConvexLocalizedSVRCV
    >>> from manykernels.kernels import Linear
    >>> X = np.random.default_rng(0).uniform(-1, 1, (120, 1))
    >>> model = ConvexLocalizedSVRCV(Linear(), regions=[1, 2], Cs=[10]).fit(X, np.abs(X[:, 0]))
    >>> model.n_regions_, bool(model.best_score_ > 0.95)
    (2, True)
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
        """Choose regions, p, C and ε, then learn from all samples."""
        regions, region_axes = region_grid(self)
        rows = targeted_rows(self, X, y, sample_weight, groups=groups)
        spread = spread_of_targets(rows)
        grid = Grid(
            {
                **region_axes,
                "p": checked_norms(self.ps, MACHINE_NORMS),
                "C": checked_positive(self.Cs, spread * np.array(REGRESSION_PENALTIES), "Cs"),
                "epsilon": checked_non_negative(
                    self.epsilons, spread * np.array(DEFAULT_WIDTHS), "epsilons"
                ),
            }
        )
        kernels = TrainingKernels.of(rows, rows.counts, shift_invariant=False)
        search = Search.of(self, X, y, rows, kernels)
        machines = partial(ValueMachines.of, self)
        by_region = KernelsByRegion(grid, regions)
        choice, chosen = search.choose(grid, held_out_outputs(search, grid, machines, by_region))
        learning = WeightLearning.at(self, choice.params["p"])
        final = search.task.subtask("final fit", learning.max_iter + 1)
        best = Regions.found(regions, **{name: choice.params[name] for name in region_axes})
        prepared = MachineKernels.prepared(kernels, rows, self.normalize, step=best.step)
        losses = machines(search.samples)(prepared.stack, choice.params)
        learning = learning.by_region(prepared.stack.n_regions)
        learnt = learning.learn(losses, prepared.stack.names, final)
        final.end()
        machine = LearntMachine.of(rows, prepared, learnt)
        of_regions = best.attributes(learnt.weights, kernels.stack.names)
        return self._keep(search.task, machine.attributes, of_regions, chosen)

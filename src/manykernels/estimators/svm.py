"""MKSVC, MKSVR and MKOneClassSVM: support vector machines on weighted sums of kernels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from ..kernels import KernelStack
from ..kernels.transforms import Center, Chain, StackTransform
from ..losses.base import ProblemSpec
from ..losses.svm import (
    EpsilonInsensitiveLoss,
    HingeLoss,
    JointSquaredHingeLoss,
    OneClassLoss,
    SquaredHingeLoss,
)
from ..scale.features import Approximation
from ..utils.numerics import ROUNDING
from ..utils.sklearn import StrOptions, safe_indexing
from ..utils.storable import storable
from .base import CLASS_WEIGHT, POSITIVE, FitTask, estimator, fits
from .feature_data import ApproximationParameters, approximation_for, refuse_with_features
from .inputs import (
    Source,
    TrainingRows,
    labelled_rows,
    one_against_rest,
    targeted_rows,
    unlabelled_rows,
)
from .kernel_data import (
    KernelPredictor,
    LearntWeights,
    TrainingKernels,
    WeightLearning,
    WeightParameters,
)
from .on_features import MachineGathering, learn_machines_on_features
from .prediction import (
    EpsilonParameters,
    KernelClassifier,
    KernelRegressor,
    NoveltyDetector,
    boundary_shift,
)

#: Relative gap of the inner machines as a part of `tol`: small enough that their gaps do not
#: decide whether the gap of the kernel weights is closed.
INNER_SHARE = 1e-3


class SupportAttributes:
    """Fitted attributes of support vector machines.

    Attributes
    ----------
    support_ : ndarray of int
        Row numbers of the support vectors (of any class).
    n_support_ : ndarray of shape (1,), or (n_classes,) for a classifier
        How many there are, by the class they belong to.
    support_vectors_ : table
        Their rows, unless precomputed.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        ``Σ_j weights_[j] K_j(X, support) @ dual_coef_.T + intercept_`` is the output, with K_j
        normalised. The machine is the one whose objective is ``certificate_.primal``; at a loose
        `tol` coefficients may be above C by a small factor that is common to all.
    intercept_ : ndarray of shape (n_outputs,)
    """


@dataclass(frozen=True)
class MachineKernels:
    """Kernels as support vector machines take them: normalised, and centred if they have a bias.

    The coefficients of a machine with a bias sum to zero, so that centring changes its bias only.
    Without it, the differences between samples would be lost in the rounding errors of a large
    part that all have in common.

    `transform` is the normalisation, `stack` are the normalised (and centred) kernels, `center`
    is the centring.
    """

    kernels: TrainingKernels
    transform: Chain
    stack: Any
    center: Center | None

    @classmethod
    def of(
        cls, rows: TrainingRows, normalize: str | None, solver: Any, *, has_bias: bool = True
    ) -> MachineKernels:
        """Compute or check the kernels of `rows`, and normalise them."""
        kernels = TrainingKernels.of(rows, rows.counts, shift_invariant=has_bias, solver=solver)
        return cls.prepared(kernels, rows, normalize, has_bias=has_bias)

    @classmethod
    def prepared(
        cls,
        kernels: TrainingKernels,
        rows: TrainingRows,
        normalize: str | None,
        *,
        has_bias: bool = True,
        step: StackTransform | None = None,
    ) -> MachineKernels:
        """Normalise kernels of `rows` that are known already; a `step` may follow."""
        transform = kernels.preparation(normalize, center=False)
        if step is not None:
            transform.steps.append(step)
        stack = kernels.prepared(transform, rows.counts)
        if not has_bias:
            return cls(kernels, transform, stack, None)
        center = Center()
        return cls(kernels, transform, center.fit_transform(stack), center)

    def uncentred(self, biases: np.ndarray, weights: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Biases of the same machines on the kernels before centring.

        For coefficients v with ``Σ_l v_l = 0`` and the offsets o_j of centring,
        ``Σ_l v_l (K_j(r, l) − o_j(r) − o_j(l)) = Σ_l v_l K_j(r, l) − o_j·v``.
        """
        if self.center is None:
            return biases
        used = np.flatnonzero(weights)
        corrected: np.ndarray = biases - weights[used] @ (self.center.select(used).offsets_ @ dual)
        return corrected

    def predictor(
        self, weights: np.ndarray, coefficients: np.ndarray, rows: np.ndarray
    ) -> KernelPredictor:
        """Outputs of machines with these coefficients of the training samples in `rows`."""
        transform = self.transform
        if self.center is not None:
            # Instead of centring, which would need all training samples.
            transform = Chain([*transform.steps, _SubtractRowMean().fit(self.stack)])
        source = self.kernels.source
        return KernelPredictor.of(source, transform, self.stack, weights, coefficients, rows)


@storable
class _SubtractRowMean(StackTransform):
    """Subtract from each row its mean over the columns.

    In exact arithmetic that changes no output, as coefficients sum to zero. Computed ones do so
    up to rounding errors, which large entries would magnify.
    """

    of_each_kernel = True

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: Any) -> None:
        """Nothing to learn."""

    def _transform(self, stack: KernelStack) -> KernelStack:
        n_columns = stack.shape[1]
        means = stack.apply(np.full((n_columns, 1), 1.0 / n_columns))[:, :, 0]
        return stack.shifted(means, np.zeros((stack.n_kernels, n_columns)))


@storable
@dataclass(frozen=True)
class SupportVectors:
    """The training samples with coefficients, at the positions `support`.

    `dual` has the coefficients of all training samples, (m, n_outputs), exactly zero where they
    are rounding errors.
    """

    dual: np.ndarray
    support: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, dual: np.ndarray) -> SupportVectors:
        """From the coefficients that a solver returns."""
        negligible = np.abs(dual) <= ROUNDING * np.abs(dual).max(initial=0.0)
        dual = np.where(negligible, 0.0, dual)
        return cls(dual, np.flatnonzero(dual.any(axis=1)))

    @property
    def kept(self) -> np.ndarray:
        """The support vectors; if there are none (a constant machine), one sample instead."""
        return self.support if len(self.support) else np.array([0])

    @property
    def coefficients(self) -> np.ndarray:
        """Those of the samples that are kept, (n_kept, n_outputs)."""
        return self.dual[self.kept]

    def attributes(self, rows: TrainingRows, source: Source) -> dict[str, Any]:
        """Fitted attributes for users; `source` has the samples that are kept."""
        n_support = len(self.support)
        counts = np.array([n_support])
        if rows.classes is not None:
            counts = np.bincount(rows.labels[self.support], minlength=len(rows.classes))
        attributes = {
            **source.attributes,
            "support_": rows.numbers[self.support].astype(np.int32),
            "n_support_": counts.astype(np.int32),
            "dual_coef_": np.ascontiguousarray(self.dual[self.support].T),
        }
        if "X_fit_" in attributes:
            kept = attributes.pop("X_fit_")
            attributes["support_vectors_"] = kept if n_support else safe_indexing(kept, [])
        return attributes


@dataclass(frozen=True)
class LearntMachine:
    """Machines with the kernel weights that were learnt along with them."""

    rows: TrainingRows
    kernels: MachineKernels
    learnt: LearntWeights
    vectors: SupportVectors
    intercept: np.ndarray

    @classmethod
    def of(
        cls, rows: TrainingRows, kernels: MachineKernels, learnt: LearntWeights
    ) -> LearntMachine:
        """The machines at the weights that were learnt."""
        evaluations = learnt.evaluations
        vectors = SupportVectors.of(np.hstack([one.coefficients for one in evaluations]))
        intercept = np.concatenate(
            [
                kernels.uncentred(one.biases, own, one.coefficients)
                for own, one in zip(learnt.weights, evaluations, strict=True)
            ]
        )
        return cls(rows, kernels, learnt, vectors, intercept)

    def widened(self, shift: np.ndarray, cost: float) -> LearntMachine:
        """The same with `shift` added to the intercepts; its `cost` counts as rounding error."""
        learnt: Any = self.learnt
        return replace(self, learnt=learnt.with_rounding(cost), intercept=self.intercept + shift)

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes."""
        weights, vectors = self.learnt.weights, self.vectors
        predictor = self.kernels.predictor(
            weights if len(weights) > 1 else weights[0], vectors.coefficients, vectors.kept
        )
        return {
            **self.rows.attributes,
            **self.learnt.attributes,
            **vectors.attributes(self.rows, self.kernels.kernels.source.keep(vectors.kept)),
            "intercept_": self.intercept,
            "_predictor": predictor,
        }


# -- MKSVC: ℓp-norm multiple kernel support vector classification ---------------------------------


#: The losses that machines of two classes may have.
LOSSES: dict[str, Any] = {"hinge": HingeLoss, "squared_hinge": SquaredHingeLoss}

# What machines on features cannot have: the value that they need of a parameter, and why.
MACHINES_ON_FEATURES: dict[str, tuple[Any, str]] = {
    "loss": (
        "squared_hinge",
        "machines on features are learnt by Newton's method, which needs a loss with derivatives",
    ),
    "solver": ("newton", "the other solvers take kernel matrices"),
}


@storable
@estimator(ApproximationParameters, SupportAttributes, WeightParameters)
class MKSVC(KernelClassifier):
    """ℓp-norm multiple kernel support vector classification.

    Learns one weight per kernel, ``‖weights‖_p ≤ 1``, along with a support vector machine on the
    weighted sum, and proves how close to the best weights it got. For two classes,
    with one kernel and ``normalize=None``, it is scikit-learn's ``SVC``.

    Parameters
    ----------
    C : float or "joint", default=1.0
        Penalty of samples inside the margin, acting on the kernels after `normalize`. "joint"
        learns it as the weight of one more kernel, the identity (squared hinge only).
    loss : {"hinge", "squared_hinge"}, default="hinge"
        ``C Σ max(0, 1 − y f)`` or ``½ C Σ max(0, 1 − y f)²``.
    multi_class : {"shared", "separate"}, default="shared"
        More than two classes are learnt one against the rest, with one weight vector for all
        classes or one for each.
    solver : str or a solver object, default="newton"
        "newton" is the one to use. Others: "sip" and "silp" (cutting planes; Sonnenburg 2006),
        "analytic" (closed-form updates; Kloft 2011), "interleaved" (the same between steps of
        the machine, kernels computed when needed), "reduced-gradient" (SimpleMKL, p = 1),
        "smo-mkl" (p > 1), "qcqp" (SM1, SM2 and SM2_C of Lanckriet 2004, p = 1).
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class.
    approximation : Nystrom, RandomFeatures, ExactFeatures, "auto" or None, default=None
        Replace kernels by explicit features, whose products sum up to them, with
        ``loss="squared_hinge"``: memory depends on the number of features, not of rows, which are
        read several times; see the notes. X and y may then be whatever
        :func:`~manykernels.scale.row_blocks` reads. "auto" is ``Nystrom()`` for more than 5000
        rows, with a warning that says so. None learns from kernel matrices.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,), or (n_classes, n_kernels)
        Learnt kernel weights, of the normalised kernels; a row for each of more than two classes
        if separate. The certificate is that of the sum over classes.
    C_ : float, or ndarray of shape (n_classes,)
        C, given or learnt; an array where each class has learnt its own.

    Notes
    -----
    With an `approximation`, which needs ``loss="squared_hinge"``, machines are learnt by Newton's
    method in passes over the rows, each of which computes the features again
    (:mod:`manykernels.scale.hinge`). There are about ten of them, and more the larger C is:
    ``history_["n_passes"]``. Support vectors are neither kept nor counted: instead of `support_`,
    `n_support_`, `support_vectors_` and `dual_coef_` there is `coef_`. An inner solve is a
    factorisation of a matrix of all features, for each machine. ``certificate_.dual_point`` has
    coefficients and, in its last row, biases of machines f. Their errors ``C max(0, 1 − y f)``,
    times the weights of samples, are the dual variables, once those of the two sides have been
    scaled to the same sum.

    Decision values are not probabilities. Where these are wanted, use :class:`MKSVCCV`, which
    chooses p and C, too, or calibrate: ``CalibratedClassifierCV(MKSVC(), ensemble=False)``.

    References
    ----------
    G. R. G. Lanckriet et al. Learning the kernel matrix with semidefinite programming.
    JMLR 5, 2004.
    S. Sonnenburg et al. Large scale multiple kernel learning. JMLR 7, 2006.
    A. Rakotomamonjy et al. SimpleMKL. JMLR 9, 2008.
    M. Kloft et al. ℓp-norm multiple kernel learning. JMLR 12, 2011.

    Examples
    --------
    >>> from manykernels import MKSVC
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views(noise=1)
    >>> model = MKSVC(RBF(), p=1, C=1.0).fit(views[:900], y[:900])
    >>> model.certificate_.rel_gap < 1e-4
    True
    >>> dict(zip(model.kernel_names_, model.weights_.round(2)))["noise1"]
    np.float64(0.0)
    >>> bool(model.score(views[900:], y[900:]) > 0.9)
    True
    """

    C: float | str = 1.0
    loss: str = "hinge"
    multi_class: str = "shared"
    class_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [*POSITIVE, StrOptions({"joint"})],
        "loss": [StrOptions(set(LOSSES))],
        "multi_class": [StrOptions({"shared", "separate"})],
        "class_weight": CLASS_WEIGHT,
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the machine."""
        if self.C == "joint" and self.loss != "squared_hinge":
            raise ValueError(
                'C="joint" needs loss="squared_hinge": with the hinge loss C is a bound, not '
                "the weight of a kernel."
            )
        if (approximation := approximation_for(self, X)) is not None:
            return self._fit_on_features(approximation, X, y, sample_weight)
        learning = WeightLearning.of(self)
        rows = labelled_rows(self, X, y, sample_weight, self.class_weight)
        groups = machine_groups(rows.labels, len(rows.classes), self.multi_class)
        spec = self._spec(len(rows), rows.data.n_kernels, groups.shape[2])
        rows = learning.place_kernels(rows, spec)
        task = FitTask.begin(self, X, y, len(groups) * (learning.max_iter + 1))
        kernels = MachineKernels.of(rows, self.normalize, learning.solver)
        losses = [self._make_loss(kernels.stack, group, rows) for group in groups]
        learnt = learning.learn(losses, kernels.stack.names, task)
        C = float(self.C) if self.C != "joint" else _learnt_penalties(learnt)
        return self._keep(task, LearntMachine.of(rows, kernels, learnt).attributes, C_=C)

    def _gathering(self, approximation: Approximation) -> MachineGathering:
        refuse_with_features(self, **MACHINES_ON_FEATURES)
        if self.C == "joint":
            raise ValueError(
                f'C="joint" does not go with approximation={self.approximation}: the identity '
                "matrix has as many features as there are samples. Pass a number, or "
                "approximation=None."
            )
        return MachineGathering(self, approximation, classifies=True)

    def _fit_on_features(
        self, approximation: Approximation, X: Any, y: Any, sample_weight: Any
    ) -> Self:
        gathering = self._gathering(approximation)
        blocks = gathering.blocks(X, y, sample_weight)
        rows, learning = gathering.gathered(blocks, y), WeightLearning.of(self)
        n_classes, C = rows.targets.width, float(self.C)
        groups = machine_groups(np.arange(n_classes), n_classes, self.multi_class)
        task = FitTask.begin(self, X, y, len(groups) * (learning.max_iter + 1))
        fitted = learn_machines_on_features(
            rows, blocks, groups, C, self.class_weight, self.normalize, learning, task
        )
        return self._keep(task, fitted, C_=C)

    def _spec(self, n_samples: int, n_kernels: int, n_outputs: int) -> ProblemSpec:
        """Kind and sizes of one loss, before kernels are computed."""
        if self.C == "joint":
            kind: type = JointSquaredHingeLoss
            return ProblemSpec(kind, n_samples, n_kernels + 1, n_outputs, learns_reg=True)
        return ProblemSpec(LOSSES[self.loss], n_samples, n_kernels, n_outputs)

    def _make_loss(self, stack: Any, signs: np.ndarray, rows: TrainingRows) -> Any:
        inner_tol = INNER_SHARE * self.tol
        if self.C != "joint":
            return LOSSES[self.loss](stack, signs, self.C * rows.factors, inner_tol)
        # The identity is one more kernel, normalised like the others: of unit trace, or as it is.
        total = len(rows) if rows.counts is None else float(rows.counts.sum())
        unit = 1.0 / total if self.normalize == "trace" else 1.0
        return JointSquaredHingeLoss(stack, signs, unit, rows.factors, inner_tol)


def machine_groups(labels: np.ndarray, n_classes: int, multi_class: str) -> np.ndarray:
    """Targets ±1 of all machines, (n_groups, n_samples, n_machines).

    The machines of a group are learnt with one vector of kernel weights.
    """
    signs = one_against_rest(labels, n_classes)
    return signs.T[:, :, None] if multi_class == "separate" else signs[None]


def _learnt_penalties(learnt: Any) -> Any:
    """C of every loss, a number if there is one loss."""
    pairs = zip(learnt.losses, learnt.solutions, strict=True)
    penalties = [loss.penalty(solution.weights) for loss, solution in pairs]
    return penalties[0] if len(penalties) == 1 else np.array(penalties)


# -- MKSVR: ℓp-norm multiple kernel support vector regression -------------------------------------


@storable
@estimator(EpsilonParameters, SupportAttributes, WeightParameters)
class MKSVR(KernelRegressor):
    """ℓp-norm multiple kernel support vector regression.

    Learns one weight per kernel along with an ε-insensitive regression on the weighted sum. With
    one kernel and ``normalize=None`` it is scikit-learn's ``SVR``.

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

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the machine."""
        learning = WeightLearning.of(self)
        rows = targeted_rows(self, X, y, sample_weight)
        spec = ProblemSpec(EpsilonInsensitiveLoss, len(rows), rows.data.n_kernels, 1)
        rows = learning.place_kernels(rows, spec)
        task = FitTask.begin(self, X, y, learning.max_iter + 1)
        kernels = MachineKernels.of(rows, self.normalize, learning.solver)
        penalties, inner_tol = self.C * rows.factors, INNER_SHARE * self.tol
        loss = EpsilonInsensitiveLoss(
            kernels.stack, rows.targets, penalties, self.epsilon, inner_tol
        )
        learnt = learning.learn([loss], kernels.stack.names, task)
        return self._keep(task, LearntMachine.of(rows, kernels, learnt).attributes)


# -- MKOneClassSVM: ℓp-norm multiple kernel novelty detection -------------------------------------


@storable
@estimator(SupportAttributes, WeightParameters)
class MKOneClassSVM(NoveltyDetector):
    """ℓp-norm multiple kernel one-class support vector machine.

    Learns one weight per kernel along with a half-space that holds most samples and stays away
    from the origin of the feature space of the weighted sum. With one kernel and
    ``normalize=None`` it is scikit-learn's ``OneClassSVM``.

    The best weights are those by which the half-space is *furthest* from the origin: kernels
    under which samples look alike. At p = 1 that is often one kernel, the widest; larger p give
    weight to more of them.

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

    @fits
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn kernel weights and the machine."""
        learning = WeightLearning.of(self)
        rows = unlabelled_rows(self, X, sample_weight)
        rows = learning.place_kernels(
            rows, ProblemSpec(OneClassLoss, len(rows), rows.data.n_kernels, 1)
        )
        task = FitTask.begin(self, X, y, learning.max_iter + 1)
        # The distance from the origin counts: a constant added to a kernel changes the machine.
        kernels = MachineKernels.of(rows, self.normalize, learning.solver, has_bias=False)
        loss = OneClassLoss(kernels.stack, self.nu, rows.counts, INNER_SHARE * self.tol)
        learnt = learning.solve([loss], kernels.stack.names, task)
        machine = LearntMachine.of(rows, kernels, learnt)
        # Adding b to the intercept raises the objective by b Σα at most: sample losses only fall.
        total = float(machine.vectors.dual.sum())
        size = float((learnt.weights[0] @ kernels.stack.row_diag).max()) * total
        shift = boundary_shift(machine.intercept, size)
        machine = machine.widened(shift, float(shift[0]) * total)
        machine.learnt.warn_unless_converged()
        return self._keep(task, machine.attributes, offset_=-float(machine.intercept[0]))

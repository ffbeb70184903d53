"""MKSVC, MKSVR and MKOneClassSVM: support vector machines on weighted sums of kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..domains import Domain
from ..kernels import KernelStack
from ..kernels.tables import Table
from ..kernels.transforms import Center, Chain, StackTransform
from ..losses.base import ProblemSpec
from ..losses.svm import (
    EpsilonInsensitiveLoss,
    HingeLoss,
    JointSquaredHingeLoss,
    MulticlassHingeLoss,
    OneClassLoss,
    SquaredHingeLoss,
)
from ..scale.features import Approximation
from ..utils.numerics import ROUNDING
from ..utils.sklearn import StrOptions, safe_indexing
from ..utils.storable import storable
from .base import CLASS_WEIGHT, POSITIVE, FitTask, KernelEstimator, estimator, fits
from .feature_data import ApproximationParameters, approximation_for, refuse_with_features
from .inputs import Source
from .kernel_data import KernelPredictor, TrainingKernels, centring_shift
from .learning import (
    Point,
    Task,
    fit_model,
    refuse_labels_with_features,
    share_workspace,
    target_groups,
)
from .on_features import MachineGathering, learn_machines_on_features
from .prediction import (
    EpsilonParameters,
    KernelClassifier,
    KernelRegressor,
    LabelParameters,
    NoveltyDetector,
    boundary_shift,
)
from .search import Search
from .training_rows import (
    TrainingRows,
    class_weighted,
    labelled_rows,
    one_against_rest,
    targeted_rows,
    unlabelled_rows,
)
from .weights import Learnt, LearntWeights, WeightLearning, WeightParameters

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
        How many there are, by the class they belong to; of several labels, for each of these.
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
    rows: TrainingRows

    @property
    def names(self) -> list[str]:
        """Names of the prepared kernels."""
        return self.stack.names

    @property
    def n_regions(self) -> int:
        """Number of regions with weights of their own."""
        return self.stack.n_regions

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
            return cls(kernels, transform, stack, None, rows)
        center = Center()
        return cls(kernels, transform, center.fit_transform(stack), center, rows)

    def uncentred(self, biases: np.ndarray, weights: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Biases of the same machines on the kernels before centring."""
        if self.center is None:
            return biases
        corrected: np.ndarray = biases - centring_shift(self.center, weights, dual)
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

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: object) -> None:
        """Nothing to learn."""

    def _transform(self, stack: KernelStack) -> KernelStack:
        n_columns = stack.shape[1]
        means = stack.apply(np.full((n_columns, 1), 1.0 / n_columns))[:, :, 0]
        return stack.shifted(means, np.zeros((stack.n_kernels, n_columns)))

    def pulled_back(self, coefficients: np.ndarray) -> np.ndarray:
        centred: np.ndarray = coefficients - coefficients.mean(axis=1, keepdims=True)
        return centred


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
        """Dual coefficients of the samples that are kept, (n_kept, n_outputs)."""
        return self.dual[self.kept]

    def attributes(self, rows: TrainingRows, source: Source) -> dict[str, Any]:
        """Fitted attributes for users; `source` has the samples that are kept."""
        n_support = len(self.support)
        counts = np.array([n_support])
        if rows.n_labels is not None:
            counts = np.count_nonzero(self.dual, axis=0)
        elif rows.classes is not None:
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


@dataclass(frozen=True)
class MachineTask(Task):
    """Support vector machines of any kind."""

    normalize: str | None = "multiplicative"
    tol: float = 1e-4

    #: Whether adding a constant to a kernel changes nothing.
    has_bias: ClassVar[bool] = True

    @property
    def inner_tol(self) -> float:
        """Relative gap of the machines at given kernel weights."""
        return INNER_SHARE * self.tol

    def kernels(self, rows: TrainingRows, solver: Any = None) -> TrainingKernels:
        return TrainingKernels.of(rows, rows.counts, shift_invariant=self.has_bias, solver=solver)

    def prepare(self, kernels: TrainingKernels, rows: TrainingRows) -> MachineKernels:
        return MachineKernels.prepared(kernels, rows, self.normalize, has_bias=self.has_bias)

    def search(
        self,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        rows: TrainingRows,
        kernels: TrainingKernels,
    ) -> Search:
        # Machines weight the classes of every training part by themselves.
        samples = replace(kernels.samples(rows), weights=rows.counts)
        return Search.of(estimator, X, y, rows, kernels, samples)

    def fitted(
        self, data: Any, learnt: Learnt, domains: Sequence[Domain | None]
    ) -> dict[str, Any]:
        return LearntMachine.of(data.rows, data, learnt).attributes


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
@estimator(LabelParameters, ApproximationParameters, SupportAttributes, WeightParameters)
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
    multi_class : {"shared", "separate", "single"}, default="shared"
        More than two classes are learnt one against the rest, with one weight vector for all
        classes or one for each; or by a single machine for all classes (hinge loss only), see the
        notes.
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
    With ``multi_class="single"`` the discriminants f^l of all classes minimise ``½ Σ_l ‖f^l‖² +
    C Σ_i Σ_{l≠y_i} max(0, 2 − f^{y_i}(x_i) + f^l(x_i))`` (Weston and Watkins 1999): a sample is to
    score higher in its own class than in every other one. For two classes that is the binary
    machine with the same C. The solvers "newton", "analytic" and "sip" take it and, at p = 1,
    "silp" and "reduced-gradient".

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
    J. Weston, C. Watkins. Support vector machines for multi-class pattern recognition. ESANN 1999.

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

    One machine for all classes:

    >>> model = MKSVC(RBF(), multi_class="single").fit(views[:300], y[:300])
    >>> model.certificate_.converged, model.decision_function(views[900:]).shape[1]
    (True, 10)
    """

    C: float | str = 1.0
    loss: str = "hinge"
    multi_class: str = "shared"
    class_weight: dict[Any, float] | str | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [*POSITIVE, StrOptions({"joint"})],
        "loss": [StrOptions(set(LOSSES))],
        "multi_class": [StrOptions({"shared", "separate", "single"})],
        "class_weight": CLASS_WEIGHT,
    }

    @fits
    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn kernel weights and the machine.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or indicator matrix (n_samples, n_labels)
            Class labels of any kind, or 0 and 1 for each of several labels.
        """
        refuse_single_machine(self)
        if self.C == "joint" and self.loss != "squared_hinge":
            raise ValueError(
                'C="joint" needs loss="squared_hinge": with the hinge loss C is a bound, not '
                "the weight of a kernel."
            )
        if (approximation := approximation_for(self, X)) is not None:
            return self._fit_on_features(approximation, X, y, sample_weight)
        return fit_model(self, SVCTask.of(self, self.C), X, y, sample_weight)

    def _fit_on_features(
        self, approximation: Approximation, X: Table, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> Self:
        refuse_with_features(self, **MACHINES_ON_FEATURES)
        refuse_labels_with_features(self, y)
        if self.C == "joint":
            raise ValueError(
                f'C="joint" does not go with approximation={self.approximation!r}: the identity '
                "matrix has as many features as there are samples. Pass a number, or "
                "approximation=None."
            )
        gathering = MachineGathering(self, approximation, classifies=True)
        blocks = gathering.blocks(X, y, sample_weight)
        rows, learning = gathering.gathered(blocks, y), WeightLearning.of(self)
        n_classes, C = rows.targets.width, float(self.C)
        groups = machine_groups(np.arange(n_classes), n_classes, self.multi_class)
        task = FitTask.begin(self, X, y, len(groups) * (learning.max_iter + 1))
        fitted = learn_machines_on_features(
            rows, blocks, groups, C, self.class_weight, self.normalize, learning, task
        )
        return self._keep(task, fitted, C_=C)


@dataclass(frozen=True)
class SVCTask(MachineTask):
    """Support vector classification, several classes one against the rest or by one machine."""

    C: float | str | None = None
    loss: str = "hinge"
    multi_class: str = "shared"
    multi_label: str = "separate"
    class_weight: dict[Any, float] | str | None = None

    @classmethod
    def of(cls, estimator: KernelEstimator, C: Any) -> Self:
        """From the parameters of an estimator; C is None where every point of a grid has one."""
        names = ("normalize", "tol", "loss", "multi_class", "multi_label", "class_weight")
        return cls(**{name: getattr(estimator, name) for name in names}, C=C)

    def rows(
        self,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> TrainingRows:
        rows = labelled_rows(estimator, X, y, sample_weight, self.class_weight, groups=groups)
        shares = rows.n_labels is not None and self.multi_label == "shared"
        if shares and self.C == "joint" and self.class_weight is not None:
            raise ValueError(
                'class_weight does not go with C="joint" and multi_label="shared": every label '
                "would weight the samples differently, and C is the weight of one kernel. Pass a "
                'number for C, or multi_label="separate".'
            )
        return rows

    def n_losses(self, targets: Any) -> int:
        if np.ndim(targets) == 2:
            return len(target_groups(targets.shape[1], self.multi_label))
        n_classes = len(np.unique(targets))
        return n_classes if self.multi_class == "separate" and n_classes > 2 else 1

    def spec(self, rows: TrainingRows, n_kernels: int) -> ProblemSpec:
        machines = ClassMachines.of(self, rows)
        kind, n_outputs = machines.kind, machines.groups.shape[2]
        if self.C == "joint":
            kind = JointSquaredHingeLoss
            return ProblemSpec(kind, len(rows), n_kernels + 1, n_outputs, learns_reg=True)
        return ProblemSpec(kind, len(rows), n_kernels, n_outputs)

    def losses(self, data: MachineKernels, points: Sequence[Point]) -> list[Any]:
        machines = ClassMachines.of(self, data.rows)
        if self.C != "joint":
            return machines.losses(data.stack, [point.get("C", self.C) for point in points])
        # The identity is one more kernel, normalised like the others: of unit trace, or as it is.
        counts = data.rows.counts
        total = len(data.rows) if counts is None else float(counts.sum())
        unit = 1.0 / total if self.normalize == "trace" else 1.0
        return share_workspace(
            [
                JointSquaredHingeLoss(data.stack, signs, unit, weights, self.inner_tol)
                for signs, weights in machines.weighted_groups()
            ]
        )

    def fitted(
        self, data: Any, learnt: Learnt, domains: Sequence[Domain | None]
    ) -> dict[str, Any]:
        C = _learnt_penalties(learnt) if self.C == "joint" else self.C
        return {**super().fitted(data, learnt, domains), "C_": C}


@dataclass(frozen=True)
class ClassMachines:
    """Machines of the targets ±1 in `groups`, (n_groups, n_samples, n_machines).

    The machines of a group are one loss, of the class `kind`. `weights` (n_samples,) are factors
    of C; of several labels, they may have a column for each.
    """

    groups: np.ndarray
    weights: np.ndarray
    kind: Any
    inner_tol: float

    @classmethod
    def of(cls, estimator: Any, samples: Any) -> ClassMachines:
        """Machines of training samples, with weights of classes that are learnt from these."""
        labels, classes = samples.labels, samples.classes
        weights = class_weighted(estimator.class_weight, labels, classes, samples.counts)
        kind, sharing = LOSSES[estimator.loss], estimator.multi_class
        if labels.ndim == 2:
            sharing = estimator.multi_label
        elif sharing == "single" and len(classes) > 2:
            kind = MulticlassHingeLoss
        return cls(
            machine_groups(labels, len(classes), sharing),
            np.ones(len(labels)) if weights is None else weights,
            kind,
            INNER_SHARE * estimator.tol,
        )

    @property
    def n_outputs(self) -> int:
        n_groups, _, n_columns = self.groups.shape
        return n_groups * n_columns

    def weighted_groups(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Targets of every group, and the factors of C of its machines."""
        for k, signs in enumerate(self.groups):
            if self.weights.ndim == 1:
                yield signs, self.weights
            else:
                yield signs, self.weights if len(self.groups) == 1 else self.weights[:, k]

    def __call__(self, stack: Any, params: dict[str, float]) -> list[Any]:
        """Losses at a point of a grid, one for each group."""
        return self.losses(stack, [params["C"]] * len(self.groups))

    def losses(self, stack: Any, penalties: Sequence[Any]) -> list[Any]:
        """Losses, one for each group with its C."""
        return share_workspace(
            [
                self.kind(stack, signs, C * weights, self.inner_tol)
                for C, (signs, weights) in zip(penalties, self.weighted_groups(), strict=True)
            ]
        )


def refuse_single_machine(estimator: KernelEstimator) -> None:
    """Raise if one machine for all classes does not go with other parameters."""
    if estimator.multi_class == "single" and estimator.loss != "hinge":
        raise ValueError(
            f'multi_class="single" does not go with loss={estimator.loss!r}: the single machine '
            'has the hinge loss. Pass loss="hinge", or multi_class="shared".'
        )


def machine_groups(labels: np.ndarray, n_classes: int, multi_class: str) -> np.ndarray:
    """Targets ±1 of all machines, (n_groups, n_samples, n_machines).

    The machines of a group are learnt with one vector of kernel weights. Several labels per sample
    have a machine each.
    """
    signs = 2.0 * labels - 1.0 if labels.ndim == 2 else one_against_rest(labels, n_classes)
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
    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn kernel weights and the machine."""
        task = SVRTask(self.normalize, self.tol, self.C, self.epsilon)
        return fit_model(self, task, X, y, sample_weight)


@dataclass(frozen=True)
class SVRTask(MachineTask):
    """ε-insensitive regression."""

    C: float | None = None
    epsilon: Any = None

    def rows(
        self,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> TrainingRows:
        return targeted_rows(estimator, X, y, sample_weight, groups=groups)

    def spec(self, rows: TrainingRows, n_kernels: int) -> ProblemSpec:
        return ProblemSpec(EpsilonInsensitiveLoss, len(rows), n_kernels, 1)

    def losses(self, data: MachineKernels, points: Sequence[Point]) -> list[Any]:
        (point,) = points
        C, epsilon = point.get("C", self.C), point.get("epsilon", self.epsilon)
        penalties = C * data.rows.factors
        return [
            EpsilonInsensitiveLoss(
                data.stack, data.rows.targets, penalties, epsilon, self.inner_tol
            )
        ]


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
    def fit(
        self, X: Table, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn kernel weights and the machine."""
        task = OneClassTask(self.normalize, self.tol, self.nu)
        return fit_model(self, task, X, y, sample_weight)


@dataclass(frozen=True)
class OneClassTask(MachineTask):
    """Novelty detection; the distance from the origin counts, so there is no bias."""

    nu: float = 0.5

    has_bias: ClassVar[bool] = False

    def rows(
        self,
        estimator: KernelEstimator,
        X: Table,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> TrainingRows:
        return unlabelled_rows(estimator, X, sample_weight)

    def spec(self, rows: TrainingRows, n_kernels: int) -> ProblemSpec:
        return ProblemSpec(OneClassLoss, len(rows), n_kernels, 1)

    def losses(self, data: MachineKernels, points: Sequence[Point]) -> list[Any]:
        return [OneClassLoss(data.stack, self.nu, data.rows.counts, self.inner_tol)]

    def rounded(self, data: Any, learnt: Learnt) -> Learnt:
        # Adding b to the intercept raises the objective by b Σα at most: sample losses only fall.
        machine = LearntMachine.of(data.rows, data, learnt)
        return learnt.with_rounding(float(self._shift(machine)[0] * machine.vectors.dual.sum()))

    def _shift(self, machine: LearntMachine) -> np.ndarray:
        """Return what is added to the intercept, so that the boundary is inside."""
        total = float(machine.vectors.dual.sum())
        diagonal = machine.learnt.weights[0] @ machine.kernels.stack.row_diag
        return boundary_shift(machine.intercept, float(diagonal.max()) * total)

    def fitted(
        self, data: Any, learnt: Learnt, domains: Sequence[Domain | None]
    ) -> dict[str, Any]:
        machine = LearntMachine.of(data.rows, data, learnt)
        intercept = machine.intercept + self._shift(machine)
        return {
            **machine.attributes,
            "intercept_": intercept,
            "offset_": -float(intercept[0]),
        }

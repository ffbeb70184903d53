"""MKSVC: ℓp-norm multiple kernel support vector classification."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from .._sklearn import StrOptions
from ..losses import HingeLoss, JointSquaredHingeLoss, Outline, SquaredHingeLoss
from ..scale import Approximation
from ._approximated import ApproximationParameters, refuse_with_features
from ._base import CLASS_WEIGHT, POSITIVE, KernelEstimator, estimator, fits
from ._learning import WeightLearning, WeightParameters
from ._machines import INNER_SHARE, LearntMachine, MachineKernels, SupportAttributes
from ._outputs import KernelClassifier
from ._passes import MachineGathering, learn_machines_on_features
from ._progress import FitTask
from ._rows import TrainingRows, labelled_rows, one_against_rest

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


@estimator
class MKSVC(
    ApproximationParameters, KernelClassifier, SupportAttributes, WeightParameters, KernelEstimator
):
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
        if (approximation := self._approximation_for(X)) is not None:
            return self._fit_on_features(approximation, X, y, sample_weight)
        learning = WeightLearning.of(self)
        rows = labelled_rows(self, X, y, sample_weight, self.class_weight)
        groups = machine_groups(rows.labels, len(rows.classes), self.multi_class)
        outline = self._outline(len(rows), rows.data.n_kernels, groups.shape[2])
        rows = learning.admit(rows, outline)
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

    def _outline(self, n_samples: int, n_kernels: int, n_outputs: int) -> Outline:
        """Kind and sizes of one loss, before kernels are computed."""
        if self.C == "joint":
            kind: type = JointSquaredHingeLoss
            return Outline(kind, n_samples, n_kernels + 1, n_outputs, learns_reg=True)
        return Outline(LOSSES[self.loss], n_samples, n_kernels, n_outputs)

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

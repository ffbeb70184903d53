"""MKSVC: ℓp-norm multiple kernel support vector classification."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks

from .._sklearn import Interval, StrOptions
from ..kernels import KernelStack
from ..losses import (
    BoxLoss,
    HingeLoss,
    JointSquaredHingeLoss,
    Outline,
    SquaredHingeLoss,
)
from ._fitting import all_or_nothing
from ._outputs import ClassesByMargin
from ._rows import class_factors
from ._support import INNER_SHARE, SupportVectorMachine

_LOSSES: dict[str, Any] = {"hinge": HingeLoss, "squared_hinge": SquaredHingeLoss}


class MKSVC(ClassesByMargin, ClassifierMixin, SupportVectorMachine):
    """ℓp-norm multiple kernel support vector classification.

    Learns one weight per kernel, ``‖weights‖_p ≤ 1``, along with a support vector machine on the
    weighted sum, and proves how close to the best weights it got. With one kernel and
    ``normalize=None`` it is scikit-learn's ``SVC``.

    Parameters
    ----------
    kernels : kernel, KernelUnion, dict, list of (name, kernel), "precomputed" or None, optional
        What is compared, as for :class:`MKFDA`.
    p : float in [1, inf], default=2.0
        Norm of the weights: 1 gives the fewest kernels, inf the plain sum.
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
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
        How kernels are made comparable, as for :class:`MKFDA`.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class.
    tol : float, default=1e-4
        Relative duality gap at which to stop.
    max_iter : int, optional
        Most outer iterations; by default what the solver usually needs.
    verbose : bool, default=False
        Print a line per outer iteration.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,), or (n_classes, n_kernels)
        Learnt kernel weights, of the normalised kernels; a row for each of more than two classes
        if separate.
    kernel_names_ : list of str
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``rel_gap`` and ``converged``, as for :class:`MKFDA`; of the
        sum over classes.
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of int
        Row numbers of the support vectors (of any class).
    n_support_ : ndarray of shape (n_classes,)
        Support vectors by the class they belong to.
    support_vectors_ : table
        Their rows, unless precomputed.
    dual_coef_ : ndarray of shape (1 or n_classes, n_support)
        ``y α``: ``decision_function(X) = Σ_j weights_[j] K_j(X, support) @ dual_coef_.T +
        intercept_``, with K_j normalised. The machine is the one whose objective is
        ``certificate_.primal``; at a loose `tol` coefficients may be above C by a small factor
        that is common to all.
    intercept_ : ndarray of shape (1 or n_classes,)
    C_ : float, or ndarray of shape (n_classes,)
        C, given or learnt; an array where each class has learnt its own.
    n_iter_ : int
        Outer iterations.
    n_svm_solves_ : int
        Machines trained on all samples, the unit of cost.
    solver_ : str
    history_ : dict of list
        ``objective``, ``rel_gap`` and ``n_svm_solves`` at each iteration.
    union_ : KernelUnion
        Fitted kernels, unless precomputed.

    Notes
    -----
    Decision values are no probabilities. Where these are wanted, calibrate:
    ``CalibratedClassifierCV(MKSVC(), ensemble=False)``.

    References
    ----------
    G. R. G. Lanckriet et al. Learning the kernel matrix with semidefinite programming.
    JMLR 5, 2004.
    S. Sonnenburg et al. Large scale multiple kernel learning. JMLR 7, 2006.
    A. Rakotomamonjy et al. SimpleMKL. JMLR 9, 2008.
    M. Kloft et al. ℓp-norm multiple kernel learning. JMLR 12, 2011.

    Examples
    --------
    >>> from manykernels import MKSVC, views_union
    >>> from manykernels.datasets import load_digit_views
    >>> views, y = load_digit_views(noise=1)
    >>> X, union = views_union(views)
    >>> model = MKSVC(union, p=1, C=1.0).fit(X[:900], y[:900])
    >>> model.certificate_.rel_gap < 1e-4
    True
    >>> dict(zip(model.kernel_names_, model.weights_.round(2)))["noise1"]
    np.float64(0.0)
    >>> bool(model.score(X[900:], y[900:]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SupportVectorMachine._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"joint"})],
        "loss": [StrOptions(set(_LOSSES))],
        "multi_class": [StrOptions({"shared", "separate"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        kernels: Any = None,
        *,
        p: float = 2.0,
        C: float | str = 1.0,
        loss: str = "hinge",
        multi_class: str = "shared",
        solver: Any = "newton",
        normalize: str | None = "multiplicative",
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        verbose: bool = False,
    ):
        self.kernels = kernels
        self.p = p
        self.C = C
        self.loss = loss
        self.multi_class = multi_class
        self.solver = solver
        self.normalize = normalize
        self.class_weight = class_weight
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
            Class labels of any kind.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C; a weight of two counts as a repeated sample, zero as none.
            What is rounding beside the median of the weights counts as zero; a weight of more than
            1e12 times the median is refused.
        """
        self._validate_params()
        if self.C == "joint" and self.loss != "squared_hinge":
            raise ValueError(
                'C="joint" needs loss="squared_hinge": with the hinge loss C is a bound, not '
                "the weight of a kernel."
            )
        data, y, labels, mass = self._labelled_rows(X, y, sample_weight)
        counts = np.ones(len(y)) if mass is None else mass
        factors = counts * class_factors(self.class_weight, y, labels, counts)
        signs = self._signs(labels)
        groups = signs.T[:, :, None] if self.multi_class == "separate" else [signs]

        def losses(stack: KernelStack) -> list[BoxLoss]:
            return [self._make_loss(stack, group, factors, counts) for group in groups]

        self._fit_machine(X, y, data, mass, losses)
        own = np.searchsorted(self._kept_rows, self.support_)
        self.n_support_ = np.bincount(labels[own], minlength=len(self.classes_)).astype(np.int32)
        return self

    def _signs(self, labels: np.ndarray) -> np.ndarray:
        """±1 of every machine, (m, 1) or one column per class."""
        if len(self.classes_) == 2:
            return np.where(labels == 1, 1.0, -1.0)[:, None]
        return np.where(labels[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)

    def _outline(self, n_samples: int, n_kernels: int) -> Outline:
        n_classes = len(self.classes_)
        n_outputs = 1 if n_classes == 2 or self.multi_class == "separate" else n_classes
        if self.C == "joint":
            kind: type = JointSquaredHingeLoss
            return Outline(kind, n_samples, n_kernels + 1, n_outputs, learns_reg=True)
        return Outline(_LOSSES[self.loss], n_samples, n_kernels, n_outputs)

    def _make_loss(
        self, stack: KernelStack, signs: np.ndarray, factors: np.ndarray, counts: np.ndarray
    ) -> BoxLoss:
        inner_tol = INNER_SHARE * self.tol
        if self.C == "joint":
            # The identity is one more kernel and normalised like the others.
            unit = 1.0 / float(counts.sum()) if self.normalize == "trace" else 1.0
            return JointSquaredHingeLoss(stack, signs, unit, factors, inner_tol)
        loss: BoxLoss = _LOSSES[self.loss](stack, signs, self.C * factors, inner_tol)
        return loss

    def _keep_machine(self, stack: Any, transform: Any, losses: Any, solutions: Any) -> None:
        super()._keep_machine(stack, transform, losses, solutions)
        if self.C == "joint":
            pairs = zip(losses, solutions, strict=True)
            learnt = [loss.penalty(solution.weights) for loss, solution in pairs]
            self.C_ = learnt[0] if len(learnt) == 1 else np.array(learnt)
        else:
            self.C_ = float(self.C)

"""KimFDA: optimal kernel selection in kernel Fisher discriminant analysis, two classes."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.multiclass import type_of_target

from .._sklearn import Interval, StrOptions, check_y
from ..estimators._kernel_discriminant import KernelDiscriminant, Regression
from ..estimators._rows import check_targets
from ..estimators._rules import N_FOLDS, folds_to_judge_by
from ..kernels import KernelStack
from ..kernels.transforms import Chain, UnitTrace, preparation
from ..losses import KimLoss, Outline
from ..losses.left_out import LeftOut


class KimFDA(KernelDiscriminant):
    """Kernel Fisher discriminant analysis of two classes with the kernel of largest ratio.

    Learns one weight per kernel such that the regularised Fisher ratio of the weighted sum,
    Ye 2008 (4), is as large as can be, and proves how close to the best weights it got. The
    method of Kim, Magnani and Boyd, without their semidefinite program.

    Parameters
    ----------
    kernels : kernel, KernelUnion, dict, list of (name, kernel), "precomputed" or None, optional
        What is compared. None takes a linear and five Gaussian kernels of all columns. With
        "precomputed", X is a :class:`KernelStack`, an array (rows, cols, n_kernels) or one
        kernel matrix.
    p : float in [1, inf], default=1.0
        Norm of the weights: 1, as in the paper, gives the fewest kernels, inf the plain sum.
    reg : float, default=1e-8
        λ > 0, added to the sum of the covariances of the two classes in the feature space of
        kernels after `normalize`. It must not be lost in rounding: a λ of less than about 1e-14
        times the self-similarities of samples is refused. Precomputed kernels in single
        precision have negative eigenvalues of some 1e-7 of those; for them λ is raised tenfold
        until every kernel can be factorised, see `reg_`.
    solver : str or a solver object, default="newton"
        As for :class:`~manykernels.MKFDA`; solvers that work for the square loss only say so.
    normalize : {"multiplicative", "spherical", "trace"} or None, default=None
        How kernels are made comparable, with constants of the training rows: unit variance
        in feature space, unit length of every sample, or unit trace after centring. The paper
        takes Gaussian kernels as they are.
    priors : array-like of shape (2,), default=None
        Class probabilities for the decision; by default the weighted frequencies. The weight
        of a class changes nothing else here.
    tol : float, default=1e-6
        Relative duality gap at which the weights are good enough.
    max_iter : int, optional
        Most outer iterations; by default what the solver usually needs.
    verbose : bool, default=False
        Print a line per outer iteration. Progress bars: ``set_callbacks(ProgressBar())``.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Learnt kernel weights, of the normalised kernels.
    kernel_names_ : list of str
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``rel_gap``, ``converged``, ``status`` and ``message``. What
        is minimised is minus the ratio, so `primal` is negative.
    classes_ : ndarray of shape (2,)
    priors_ : ndarray of shape (2,)
    rule_ : str
        "discriminant", always; see the notes.
    dual_coef_ : ndarray of shape (n_samples, 1)
        ``decision_function(X) = Σ_j weights_[j] K_j(X, ·) @ dual_coef_ + intercept_``, with
        K_j normalised and centred.
    intercept_ : ndarray of shape (1,)
    scalings_ : ndarray of shape (n_samples, 1)
        The same for :meth:`transform`.
    means_ : ndarray of shape (2, 1)
        Class means in the space of :meth:`transform`.
    reg_ : float
        λ: `reg`, unless it was raised.
    n_iter_ : int
        Outer iterations.
    n_factorizations_ : int
        Factorisations of a matrix of all training rows, the unit of cost.
    solver_ : str
    history_ : dict of list
        ``objective``, ``rel_gap`` and ``n_factorizations`` at each iteration.
    X_fit_ : array or dataframe
        Training rows, unless precomputed.
    union_ : KernelUnion
        Fitted kernels, unless precomputed.

    Notes
    -----
    The paper does not centre kernels. Its criterion is made of differences of means and of
    samples from their class mean, so centring changes neither the best weights nor the
    direction; it is done here for the sake of rounding.

    The Fisher ratio is a decreasing function of the square loss on balanced classes. So the best
    weights, and the direction, are those of ``MKFDA(class_weight="balanced")`` with the same `p`,
    ``normalize=None`` in both and ``reg * n_samples / 2`` for `reg`.

    The papers put the threshold midway between the projected class means. As λ → 0 the outputs
    of the training samples become one point for each class and say nothing about new samples.
    Here each sample is left out in turn (in closed form, kernel weights held), its output is
    measured from the midpoint of the class means, and a new sample goes to the nearest mean of
    these outputs in units of their pooled variance, with priors: the "discriminant" rule of
    :class:`~manykernels.MKFDA`, the only one here. One factor of the scores, that with the least
    log loss in fifty folds of the left-out outputs, turns them into probabilities. As weights are
    held, these can be too sure where many kernels are weighed on few samples.

    References
    ----------
    S.-J. Kim, A. Magnani, S. Boyd. Optimal kernel selection in kernel Fisher discriminant
    analysis. ICML 2006.
    J. Ye, S. Ji, J. Chen. Multi-class discriminant kernel learning via convex programming.
    JMLR 9, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import rbf_grid
    >>> from manykernels.baselines import KimFDA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((120, 2))
    >>> y = np.where((X**2).sum(axis=1) > 1.4, "ring", "disc")
    >>> model = KimFDA(rbf_grid([0.1, 1, 10])).fit(X[:80], y[:80])
    >>> model.certificate_.converged
    True
    >>> model.score(X[80:], y[80:]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelDiscriminant._parameter_constraints,
        "reg": [Interval(Real, 0, None, closed="neither")],
        "normalize": [StrOptions({"multiplicative", "spherical", "trace"}), None],
    }

    # Each class has mean and covariance of its own in the ratio, whatever its weight.
    class_weight = None

    def __init__(
        self,
        kernels: Any = None,
        *,
        p: float = 1.0,
        reg: float = 1e-8,
        solver: Any = "newton",
        normalize: str | None = None,
        priors: Any = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        verbose: bool = False,
    ):
        self.kernels = kernels
        self.p = p
        self.reg = reg
        self.solver = solver
        self.normalize = normalize
        self.priors = priors
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _validated(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None]:
        if sample_weight is None and y is not None and _is_multiclass(y):
            # Nothing needs to be known of X for this.
            _refuse_more_than_two(np.unique(y))
        validated = super()._validated(X, y, sample_weight)
        _refuse_more_than_two(self.classes_)
        return validated

    def _preparation(self) -> Chain:
        return Chain([*preparation(self.normalize).steps, _WithoutConstants()])

    def _outline(self, n_samples: int, n_kernels: int) -> Outline:
        return Outline(KimLoss, n_samples, n_kernels, 1)

    def _make_loss(
        self, stack: KernelStack, labels: np.ndarray, weights: np.ndarray | None
    ) -> KimLoss:
        loss = KimLoss(stack, labels, float(self.reg), weights)
        if self._is_precomputed:
            for j in range(stack.n_kernels):
                if _is_single_precision(stack.data[j]):
                    loss.raise_reg(np.eye(stack.n_kernels)[j])
        return loss

    def _folds_for_rules(self, labels: np.ndarray, stack: KernelStack) -> list[np.ndarray]:
        # The discriminant is the only rule here, and it is learnt from the outputs.
        return folds_to_judge_by(labels, stack, N_FOLDS)

    def _regression(
        self,
        evaluation: Any,
        loss: KimLoss,
        multiplicity: np.ndarray | None,
        folds: list[np.ndarray],
    ) -> Regression:
        singly = evaluation.leave_one_out(multiplicity) + evaluation.midpoint
        return Regression(evaluation.coefficients, LeftOut.cross_fitted(singly, folds), None)


class _WithoutConstants(UnitTrace):
    """Make kernels that centring leaves nothing of but rounding exactly zero.

    Where all are, the ratio of rounding to rounding would pass for a discriminant.
    """

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: Any) -> None:
        super()._learn(stack, weights, y)
        self.scale_ = np.where(self.scale_ > 0.0, 1.0, 0.0)


def _is_multiclass(y: Any) -> bool:
    check_targets(y)
    return type_of_target(check_y(y, multi_output=False)) == "multiclass"


def _refuse_more_than_two(classes: np.ndarray) -> None:
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported by KimFDA, got {len(classes)} classes: "
            f"{classes.tolist()}. MKFDA takes any number of classes."
        )


def _is_single_precision(matrix: np.ndarray) -> bool:
    """Whether every entry is a number of single precision; the first rows mostly tell."""
    return all(np.array_equal(row, row.astype(np.float32)) for row in matrix)

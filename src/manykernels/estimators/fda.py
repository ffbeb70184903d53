"""MKFDA: ℓp-norm multiple kernel Fisher discriminant analysis, binary and multiclass."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from .._sklearn import Interval, StrOptions
from ..domains import lp_domain
from ..kernels import Bands, Denoise, KernelStack
from ..kernels.transforms import Center, Chain, preparation
from ..losses import JointSquareLoss, Outline, SquareLoss
from ..solvers.response import weight_response
from ._discriminant import fisher_targets
from ._kernel_discriminant import KernelDiscriminant, Regression


class MKFDA(KernelDiscriminant):
    """ℓp-norm multiple kernel Fisher discriminant analysis.

    Learns one weight per kernel, ``‖weights‖_p ≤ 1``, such that Fisher's discriminant in the
    feature space of the weighted sum separates the classes best, and proves how close to the
    best weights it got.

    Parameters
    ----------
    kernels : kernel, KernelUnion, dict, list of (name, kernel), "precomputed" or None, optional
        What is compared. None takes a linear and five Gaussian kernels of all columns. With
        "precomputed", X is a :class:`KernelStack`, an array (rows, cols, n_kernels) or one
        kernel matrix.
    p : float in [1, inf], default=2.0
        Norm of the weights: 1 gives the fewest kernels, inf the plain sum.
    reg : float or "joint", default=0.1
        λ > 0, acting on the kernels after centring and `normalize`. "joint" learns it as the
        weight of one more kernel, the identity; see the notes.
    solver : str or a solver object, default="newton"
        "newton" is the one to use. Those of the papers: "sip" and "silp" (cutting planes),
        "analytic" (closed-form updates), "dual" (L-BFGS, p > 1), "reduced-gradient" (SimpleMKL,
        p = 1), "coordinate" (kernels computed column by column, for samples that are too many for
        a matrix), "qcqp", "sdp" and "sdp-approx" (convex programs, p = 1). See
        :mod:`manykernels.solvers` for objects with options, such as ``SIP(eps=1e-4)``.
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
        How kernels are made comparable, with constants of the training rows: unit variance
        in feature space, unit length of every sample, or unit trace after centring.
    denoise : Denoise, Bands or None, default=None
        :class:`~manykernels.Denoise` keeps the leading principal axes of every kernel after
        centring; :class:`~manykernels.Bands` makes several kernels of each, so that weights are
        learnt for ranges of axes. `normalize` scales what comes out, and `weights_` and
        `kernel_names_` refer to it. It takes one decomposition per kernel.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied with `sample_weight`.
    priors : array-like of shape (n_classes,), default=None
        Class probabilities for the decision; by default the weighted frequencies.
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
        ``primal``, ``dual``, ``gap``, ``rel_gap`` and ``converged``, computed from the kernels and
        the discriminant after the last step; ``rel_rounding`` is the rounding error of the gap,
        ``status`` and ``message`` say the same in words, and ``dual_point`` is the proof.
    classes_ : ndarray of shape (n_classes,)
    priors_ : ndarray of shape (n_classes,)
    rule_ : {"indicator", "discriminant"}
        How class scores are made of the outputs of the regression; see the notes.
    dual_coef_ : ndarray of shape (n_samples, n_classes), or (n_samples, 1) if binary
        ``decision_function(X) = Σ_j weights_[j] K_j(X, ·) @ dual_coef_ + intercept_``, with
        K_j normalised and centred.
    intercept_ : ndarray of shape (n_classes,) or (1,)
    scalings_ : ndarray of shape (n_samples, n_directions)
        The same for :meth:`transform`.
    means_ : ndarray of shape (n_classes, n_directions)
        Class means in the space of :meth:`transform`.
    reg_ : float
        λ, given or learnt.
    denoise_ : Denoise, Bands or None
        Fitted on the training kernels, such as `denoise_.n_components_`.
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
    Fisher's discriminant is a regression on class labels. Decisions and probabilities rest on its
    outputs at left-out samples. These are computed from one factorisation: exactly for given
    kernel weights, and to first order for the change of the weights without those samples. (The
    weights are held where there are too many samples for a factorisation. Kernel widths, scales
    and `denoise` are always those of all samples.)

    Two rules make class scores of the outputs. The "indicator" rule takes them as estimates of
    class indicators. The "discriminant" rule is linear discriminant analysis: class means and a
    pooled covariance of left-out outputs. Fifty folds, left out in closed form, tell which one is
    used, `rule_`: the discriminant where its log loss is smaller by more than a standard error,
    its means and covariance learnt without the fold. (Two classes are left to the indicator
    rule: there is no class between them that it could mask.) Two numbers, a factor of the scores
    and an exponent of the class frequencies, then turn scores into probabilities. They are those
    with the least log loss on left-out samples.

    With ``reg="joint"`` λ and the weights share one budget, ``‖(λ/u, weights)‖_p ≤ 1`` with u the
    scale of the normalised identity: 1/m for unit traces, else 1 (Ye 2008, section 4). What is
    minimised is an error on the training samples, so λ is not what is best for new ones: it goes
    to zero, down to rounding, wherever kernels can fit single samples as the identity does, and
    can take most of the budget where none can. Accuracy need not suffer (Tables 2–5 of Ye 2008,
    docs/benchmarks/ye2008.md); where much depends on λ, compare with a search.

    References
    ----------
    F. Yan, J. Kittler, K. Mikolajczyk. Multiple kernel learning and feature space denoising.
    ICMLC 2010.
    F. Yan, J. Kittler, K. Mikolajczyk, A. Tahir. Non-sparse multiple kernel Fisher discriminant
    analysis. JMLR 13, 2012.
    J. Ye, S. Ji, J. Chen. Multi-class discriminant kernel learning via convex programming.
    JMLR 9, 2008.

    Examples
    --------
    >>> from manykernels import MKFDA, views_union
    >>> from manykernels.datasets import load_digit_views
    >>> views, y = load_digit_views(noise=1)
    >>> X, union = views_union(views)
    >>> model = MKFDA(union, p=1, reg=10.0).fit(X[:900], y[:900])
    >>> model.certificate_.rel_gap < 1e-6
    True
    >>> for name, weight in zip(model.kernel_names_, model.weights_):
    ...     print(f"{name:10s} {weight:.3f}")
    pixels     0.526
    rows       0.074
    columns    0.000
    gradients  0.112
    fourier    0.132
    coarse     0.155
    noise1     0.000
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelDiscriminant._parameter_constraints,
        "reg": [Interval(Real, 0, None, closed="neither"), StrOptions({"joint"})],
        "normalize": [StrOptions({"multiplicative", "spherical", "trace"}), None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "denoise": [Denoise, Bands, None],
    }
    # Subclasses need not have the parameter.
    denoise: Any = None

    def __init__(
        self,
        kernels: Any = None,
        *,
        p: float = 2.0,
        reg: float | str = 0.1,
        solver: Any = "newton",
        normalize: str | None = "multiplicative",
        denoise: Any = None,
        class_weight: Any = None,
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
        self.denoise = denoise
        self.class_weight = class_weight
        self.priors = priors
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def _preparation(self) -> Chain:
        chain = preparation(self.normalize)
        self.denoise_ = None if self.denoise is None else clone(self.denoise)
        if self.denoise_ is not None:
            if isinstance(self.denoise_, Denoise) and self.denoise_.reg is None:
                self.denoise_.reg = self._reg_at_unit_variance()
            # Cut along the axes of centred kernels, then scale what is left.
            after = 1 + [isinstance(step, Center) for step in chain.steps].index(True)
            chain.steps.insert(after, self.denoise_)
        return chain

    def _reg_at_unit_variance(self) -> float | None:
        """λ where kernels have unit variance and it is given."""
        given = isinstance(self.reg, Real) and self.normalize == "multiplicative"
        return float(self.reg) if given else None

    def _outline(self, n_samples: int, n_kernels: int) -> Outline:
        if self.denoise is not None:
            n_kernels = self.denoise.most_kernels(n_kernels)
        n_classes = len(self.classes_)
        n_outputs = 1 if n_classes == 2 else n_classes - 1
        if self.reg == "joint":
            return Outline(JointSquareLoss, n_samples, n_kernels + 1, n_outputs, learns_reg=True)
        return Outline(SquareLoss, n_samples, n_kernels, n_outputs)

    def _make_loss(
        self, stack: KernelStack, labels: np.ndarray, weights: np.ndarray | None
    ) -> SquareLoss:
        masses = np.bincount(labels, weights=weights).astype(float)
        targets = fisher_targets(labels, masses)
        if self.reg == "joint":
            # The identity is one more kernel and normalised like the others.
            unit = 1.0 / masses.sum() if self.normalize == "trace" else 1.0
            return JointSquareLoss(stack, targets, unit, weights)
        return SquareLoss(stack, targets, float(self.reg), weights)

    def _regression(
        self,
        evaluation: Any,
        loss: SquareLoss,
        multiplicity: np.ndarray | None,
        folds: list[np.ndarray],
    ) -> Regression:
        response = weight_response(evaluation, lp_domain(self.p))
        left_out = evaluation.leave_out(folds, multiplicity, response)
        return Regression(
            evaluation.coefficients @ loss.rotation,
            left_out.turned(loss.rotation),
            loss.rotation,
        )

"""OBSCURE: multiple kernel learning by stochastic subgradient steps, online and then in batch.

The problem, its notation and its certificate are described in a comment below. For N samples,
λ = 1/(N C), and ``z_i`` is the subgradient ``φ(x_i) ⊗ (e_{y_i} − e_{ŷ_i})``, where ŷ_i is the
class other than y_i with the largest output.

1. **Online.** For every sample inside the margin, ``θ ← θ + z_i/(q X²)`` with X the largest
   ``‖z_i‖_{2,s}``. (For kernels with k(x, x) = 1 this is the η of the authors' program.) The
   result is a good starting point, and its objective F bounds the optimal w:
   ``‖w*‖² ≤ R² = 2F/λ``.
2. **Batch.** At step t, ``θ ← (1 − λη_t) θ + η_t z_i`` and a projection onto
   ``‖θ‖_{2,s} ≤ R``, with

       η_t = 1/(λt + s_t) ,   s_t = s_{t−1} + ½(√(a² + 2q G²/R²) − a) ,   a = λt + s_{t−1} ,
       G = ‖z_i‖_{2,s} + λ‖w‖_{2,r} ,

   the proximal regularisation of Do et al. (2009): ½‖·‖²_{2,r} is strongly convex, less so for
   larger q, and s_t limits the length of the first steps.
3. **Exact** (not in the paper). The result of these two stages is random, and its gap decreases as
   one over the number of epochs. Then D is increased sample by sample, and by Newton's method,
   until the gap is closed.

For a sample of weight s, z_i is multiplied by s divided by the mean weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..domains import Domain, lp_domain
from ..estimators.base import POSITIVE, FitTask, estimator, fits
from ..estimators.prediction import KernelClassifier
from ..estimators.svm import INNER_SHARE, MachineKernels, SupportAttributes, SupportVectors
from ..estimators.training_rows import labelled_rows
from ..kernels.tables import Table
from ..losses.base import Certificate
from ..smo.program import Array, cholesky, min_curvature, solve_factored, step_within
from ..utils.numerics import ACCUMULATED, EPS, ROUNDING
from ..utils.sklearn import Interval, warn_caller
from ..utils.storable import storable

# -------------------------------------------------------------------------------------------------
# The multiclass machine without bias under a block norm: its dual, bounds and exact solution.
#
# With one vector w_j = (w_j1 … w_jk) per kernel, ``f_l(x) = Σ_j ⟨w_jl, φ_j(x)⟩``, the objective of
# Orabona et al. (2010, 2012) times N C, where λ = 1/(N C), is
#
#     P(w) = ½‖w‖²_{2,r} + Σ_i c_i max(0, 1 − f_{y_i}(x_i) + max_{l≠y_i} f_l(x_i)),
#     ‖w‖_{2,r} = (Σ_j ‖w_j‖^r)^{1/r} ,  c_i = C times the weight of sample i
#
# (Crammer and Singer's hinge). Two classes have one discriminant, ``y_i f(x_i)`` in the place of
# the difference; that is the same with kernels K_j/2, whose factor is called `unit`.
#
# **Dual.** With ``d ∈ R^{m×k}``, ``θ_j = Σ_i φ_j(x_i) d_i`` and 1/r + 1/s = 1,
#
#     D(d) = Σ_i d_{i,y_i} − ½‖θ‖²_{2,s} , Σ_l d_il = 0 ,  d_il ≤ 0 for l ≠ y_i ,  d_{i,y_i} ≤ c_i
#     w_j  = β_j θ_j ,   β_j = (‖θ_j‖ / ‖θ‖_{2,s})^{s−2} .
#
# **Kernel weights.** Let r = 2p/(p + 1), so s = 2q with q = p/(p − 1). Then ``½‖θ‖²_{2,s} =
# σ(g)``, where ``g_j = ½‖θ_j‖² = ½ tr(dᵀK_jd)`` and σ = ‖·‖_q is the support function of the ball
# ``‖β‖_p ≤ 1``, and β = ∇σ(g) is where it is attained. So the machine is ℓp-norm multiple kernel
# learning, and β, with ‖β‖_p = 1, are the weights of the library. In terms of w, as ``‖w_j‖ = β_j
# ‖θ_j‖``, these are ``β_j ∝ ‖w_j‖^{2/(p+1)}`` (Kloft et al. 2011).
#
# **Certificate.** Every d gives a w, and so a P. Every feasible d gives a D, and P − D bounds how
# far both are from the optimum.
#
# **Exact solution.** ``u_i = c_i e_{y_i} − d_i`` is nonnegative and sums to c_i. For fixed β, the
# best u_i is a projection onto this simplex; a step is taken towards it as long as D increases.
# When such steps have identified the zeros of u, Newton's method solves for the other entries: in
# directions V, e_l − e_l' of a sample i, the Hessian of −D is
#
#     (K_β)_{ii'} ⟨v, v'⟩ + Σ_jj' (∂²σ/∂g_j∂g_j') (∇g_j·v)(∇g_j'·v') .


# Largest number of free variables of a Newton step: a factorisation of about a second.
_MOST_FREE = 3000
# Largest number of consecutive Newton steps. With the right zeros they converge quadratically;
# else they stop at a bound, and a few are worthwhile before steps of single samples continue.
_MOST_STEPS = 8


@dataclass(frozen=True)
class BlockNormMachine:
    """The problem: kernels, labels 0 … k − 1, penalties c and the norm p of kernel weights."""

    kernels: Any
    labels: NDArray[np.int64]
    penalties: Array
    n_classes: int
    p: float

    @cached_property
    def domain(self) -> Domain:
        """Domain of the kernel weights."""
        return lp_domain(self.p)

    @property
    def q(self) -> float:
        """Exponent of σ."""
        return 1.0 if np.isinf(self.p) else self.p / (self.p - 1.0)

    @property
    def unit(self) -> float:
        """Factor of all kernels."""
        return 0.5 if self.n_classes == 2 else 1.0

    @cached_property
    def true_class(self) -> tuple[Any, Any]:
        """Index of the true class of each sample in arrays (k, m)."""
        return self.labels, np.arange(len(self.labels))

    @cached_property
    def matrices(self) -> Array:
        """Kernels as one array, (n_kernels, m, m)."""
        return np.ascontiguousarray(self.kernels.materialized().data, dtype=np.float64)

    @cached_property
    def min_curvature(self) -> float:
        """Curvature below which it is a rounding error."""
        return self.unit * min_curvature(self.kernels.row_diag.sum(axis=0))

    def point(self, d: Array) -> DualPoint:
        """Return the machine with coefficients d, (k, m), which need not be feasible."""
        products = self.unit * np.ascontiguousarray(self.kernels.apply(d.T).mT)
        return DualPoint(self, d, products)

    def feasible(self, d: Array) -> Array:
        """Scale the coefficients of each sample such that d is feasible."""
        largest = d[self.true_class]
        with np.errstate(divide="ignore", invalid="ignore"):
            return d * np.where(largest > self.penalties, self.penalties / largest, 1.0)

    def slacks(self, d: Array) -> Array:
        """Return u of a feasible d."""
        u = np.maximum(-d, 0.0)
        rest = self.penalties - d[self.true_class]
        # Zeros must be exact, since they determine the free variables.
        u[self.true_class] = np.where(rest > ROUNDING * self.penalties, rest, 0.0)
        return u

    def coefficients(self, u: Array) -> Array:
        """Return d of u."""
        d = -u
        d[self.true_class] = 0.0
        d[self.true_class] = -d.sum(axis=0)
        return d


@dataclass(frozen=True)
class DualPoint:
    """Coefficients d with their products ``F_j = unit · d K_j``; notation as above."""

    machine: BlockNormMachine
    d: Array = field(repr=False)
    products: Array = field(repr=False)

    @cached_property
    def squares(self) -> Array:
        """``‖θ_j‖²``."""
        return np.maximum(np.einsum("lm,jlm->j", self.d, self.products), 0.0)

    @cached_property
    def weights(self) -> Array:
        """β."""
        return np.asarray(self.machine.domain.maximizer(0.5 * self.squares))

    @cached_property
    def outputs(self) -> Array:
        """f, (k, m)."""
        return np.tensordot(self.weights, self.products, 1)

    @property
    def energy(self) -> float:
        """``½‖w‖²_{2,r} = σ(g)``."""
        return float(self.machine.domain.support(0.5 * self.squares))

    @property
    def primal(self) -> float:
        """P."""
        machine = self.machine
        others = self.outputs.copy()
        others[machine.true_class] = -np.inf
        margins = self.outputs[machine.true_class] - others.max(axis=0)
        return self.energy + float(machine.penalties @ np.maximum(1.0 - margins, 0.0))

    @property
    def dual(self) -> float:
        """D, if d is feasible."""
        return float(self.d[self.machine.true_class].sum()) - self.energy

    @property
    def rounding(self) -> float:
        """Rounding error of P − D: that of the forms, and of the sums over samples."""
        machine = self.machine
        reach = 0.5 * (self.d != 0.0) * machine.penalties
        errors = machine.unit * machine.kernels.form_errors(reach.T + np.abs(self.d.T), self.d.T)
        sums = ROUNDING * float(np.abs(self.d[machine.true_class]).sum()) + EPS * self.primal
        return float(machine.domain.support(errors)) + sums

    def certificate(self, tol: float, bound: DualPoint | None = None) -> Certificate:
        """Return the certificate; the lower bound may be that of another, feasible point."""
        proof = self if bound is None else bound
        primal, dual = self.primal, proof.dual
        d = proof.d.T if self.machine.n_classes > 2 else proof.d[1:].T
        return Certificate(primal, dual, primal - dual, tol, self.rounding, d)

    def refined(self) -> tuple[DualPoint, bool]:
        """Take Newton steps in the nonzero u; return the point, and whether to stop them."""
        point = self
        for _ in range(_MOST_STEPS):
            after = point._newton_step()
            if after is None or after.dual < point.dual - point.rounding:
                return point, True
            point = after
        return point, False

    @property
    def n_free(self) -> int:
        """Number of variables of a Newton step."""
        u = self.machine.slacks(self.d)
        return int(np.count_nonzero(u)) - u.shape[1]

    def _newton_step(self) -> DualPoint | None:
        """Take a Newton step; return None if D does not increase or the system is too large."""
        from ._obscure_loops import best_step

        machine = self.machine
        u = machine.slacks(self.d)
        # For every sample, all nonzero u except the largest.
        largest = u.argmax(axis=0)
        free = u > 0.0
        free[largest, machine.true_class[1]] = False
        classes, rows = np.nonzero(free)
        n = len(rows)
        if not 0 < n <= _MOST_FREE:
            return None
        V = np.zeros((n, machine.n_classes))
        V[np.arange(n), classes] = 1.0
        V[np.arange(n), largest[rows]] = -1.0
        ascent = self.outputs.copy()
        ascent[machine.true_class] -= 1.0  # ∂D/∂u
        slopes = np.einsum("nl,ln->n", V, ascent[:, rows])
        # D is flatter than P, which has only half as many digits when D stops increasing.
        if np.abs(slopes).max() <= ACCUMULATED * (1.0 + np.abs(self.outputs).max()):
            return None
        forms = -np.einsum("nl,jln->nj", V, self.products[:, :, rows])  # ∇g_j along V
        hessian = machine.unit * machine.kernels.combine_block(self.weights, rows) * (V @ V.T)
        hessian += forms @ self._curvature() @ forms.T
        scale = float(hessian.diagonal().mean())
        if not scale > 0.0:
            return None
        # Equal samples make the Hessian singular; see smo.multiclass.
        hessian.flat[:: n + 1] += 10.0 * ACCUMULATED * scale
        factor = cholesky(np.ascontiguousarray(0.5 * (hessian + hessian.T)), scale)
        if factor is None:
            return None
        step = solve_factored(factor, slopes[:, None])[:, 0]
        change = np.zeros_like(u)
        np.add.at(change.T, rows, step[:, None] * V)
        flat, longest = step_within(
            u.ravel(), change.ravel(), np.zeros(u.size), np.full(u.size, np.inf)
        )
        moved = flat.reshape(u.shape)
        direction = machine.point(-longest * change)
        halves = np.einsum("lm,jlm->j", direction.d, self.products)
        slope = float(direction.d[machine.true_class].sum())
        room = np.empty((2, len(self.weights)))
        t = best_step(self.squares, halves, direction.squares, slope, machine.q, *room)
        if t < 1.0:
            moved = np.maximum(u + t * longest * change, 0.0)
        return machine.point(machine.coefficients(moved))

    def _curvature(self) -> Array:
        """``∂²σ/∂g_j∂g_j'``."""
        q, size = self.machine.q, self.energy
        if q == 1.0 or not size > 0.0:
            return np.zeros((len(self.squares),) * 2)
        shares = 0.5 * self.squares / size
        with np.errstate(divide="ignore"):
            diagonal = np.where(shares > 0.0, shares ** (q - 2.0), 0.0)
        curvature: Array = (
            (q - 1.0) / size * (np.diag(diagonal) - np.outer(self.weights, self.weights))
        )
        return curvature


_COUNT = [Interval(Integral, 0, None, closed="left")]


@storable
@estimator(SupportAttributes)
class OBSCURE(KernelClassifier):
    """Multiclass ℓp-norm multiple kernel learning by stochastic subgradient steps.

    A multiclass support vector machine without bias, with one weight per kernel,
    ``‖weights‖_p = 1``. An online stage and a batch stage pass over the samples in random order;
    then a third stage closes the duality gap.

    Parameters
    ----------
    p : float in (1, inf], default=2.0
        Norm of the weights: near 1 few kernels, inf the plain sum. The norm of the machine in the
        paper is ``r = 2p/(p + 1)``. At p = 1 the method is not defined.
    C : float, default=1.0
        Penalty of samples inside the margin, for kernels after `normalize`; λ of the paper is
        ``1/(n_samples · C)``.
    n_epochs_online : int, default=5
        Number of passes over the samples in the first stage, T1 in Yan et al. (2012).
    n_epochs_batch : int, default=5
        Number of passes in the second stage, T2.
    exact : bool, default=True
        Whether a third stage closes the duality gap; without it the model is that of the paper.
    max_iter : int, default=1000
        Largest number of passes of the third stage.
    tol : float, default=1e-4
        Relative duality gap at which the third stage stops.
    random_state : int, RandomState instance or None, default=0
        Seed of the order of the samples.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Kernel weights, proportional to ``‖w_j‖^{2/(p+1)}``: those of ℓp-norm multiple kernel
        learning.
    certificate_ : Certificate
        ``primal`` is the objective ``½‖w‖²_{2,r} + C Σ hinge``, ``dual`` a lower bound on it;
        ``dual_point`` is the proof.
    history_ : dict of list
        ``stage`` ("online", "batch" or "exact"), ``objective``, ``rel_gap`` and
        ``n_inner_solves``, the number of passes, after each pass.
    n_iter_, n_inner_solves_ : int
        Number of passes over the samples.

    Notes
    -----
    More than two classes have the hinge of Crammer and Singer,
    ``max(0, 1 − f_y(x) + max_{l≠y} f_l(x))``. Two classes have one output and the usual hinge, as
    :class:`~manykernels.MKSVC`; the authors' program learns two outputs with half of this C.

    References
    ----------
    F. Orabona, L. Jie, B. Caputo. Online-batch strongly convex multi kernel learning. CVPR 2010.
    F. Orabona, L. Jie, B. Caputo. Multi kernel learning with online-batch optimization.
    JMLR 13, 2012.
    C. B. Do, Q. V. Le, C.-S. Foo. Proximal regularization for online and batch learning.
    ICML 2009.

    Examples
    --------
    >>> from manykernels.baselines import OBSCURE
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views(noise=1)
    >>> model = OBSCURE(RBF(), random_state=0).fit(views[:200], y[:200])
    >>> model.certificate_.converged
    True
    >>> paper = model.history_["stage"].index("exact")  # passes of the first two stages
    >>> model.history_["objective"][paper - 1] > model.history_["objective"][-1]
    True
    >>> model.score(views[200:], y[200:]) > 0.85
    True
    """

    p: float = 2.0
    C: float = 1.0
    n_epochs_online: int = 5
    n_epochs_batch: int = 5
    exact: bool = True
    max_iter: int = 1000
    random_state: int | np.random.RandomState | None = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "p": [Interval(Real, 1, None, closed="both")],
        "C": POSITIVE,
        "n_epochs_online": _COUNT,
        "n_epochs_batch": _COUNT,
        "exact": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    @fits
    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn kernel weights and the machine."""
        if self.p == 1:
            raise ValueError(
                "OBSCURE needs p > 1, got p=1: there the block norm, r = 2p/(p + 1) = 1, is not "
                "strongly convex, and step sizes are not defined. Use p slightly above 1, such as "
                "p=1.01, or MKSVC(p=1)."
            )
        rows = labelled_rows(self, X, y, sample_weight, None)
        n_exact = self.max_iter if self.exact else 0
        task = FitTask.begin(self, X, y, self.n_epochs_online + self.n_epochs_batch + n_exact)
        kernels = MachineKernels.of(rows, self.normalize, None, has_bias=False)
        n_classes, penalties = len(rows.classes), self.C * rows.factors
        machine = BlockNormMachine(kernels.stack, rows.labels, penalties, n_classes, float(self.p))
        passes = Passes(machine, self.tol, np.random.default_rng(self._seed()), task)
        passes.online(self.n_epochs_online)
        passes.batch(self.n_epochs_batch)
        passes.exact(n_exact)
        self._warn_unless_converged(passes.certificate, task.stopped)
        point = passes.point
        vectors = SupportVectors.of(point.d.T if n_classes > 2 else point.d[1:].T)
        return self._keep(
            task,
            rows.attributes,
            vectors.attributes(rows, kernels.kernels.source.keep(vectors.kept)),
            passes.attributes,
            kernel_names_=kernels.stack.names,
            weights_=point.weights,
            intercept_=np.zeros(vectors.dual.shape[1]),
            _predictor=kernels.predictor(point.weights, vectors.coefficients, vectors.kept),
        )

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31))

    def _warn_unless_converged(self, certificate: Certificate, stopped: bool) -> None:
        if certificate.converged:
            return
        message = f"OBSCURE is {certificate.status}. {certificate.message}"
        if certificate.status == "stopped":
            way_out = f"max_iter={self.max_iter} was reached: raise max_iter or tol."
            if stopped:
                way_out = "A callback asked for it."
            elif not self.exact:
                way_out = "Raise n_epochs_batch or tol, or set exact=True."
            message = (
                f"OBSCURE stopped at relative gap {certificate.rel_gap:.2e} > tol={self.tol:g}; "
                f"the objective is at most that far from optimal. {way_out}"
            )
        warn_caller(message, ConvergenceWarning)


@dataclass(frozen=True)
class _Pass:
    """The machine after one pass over the samples."""

    iteration: int
    stage: str
    objective: float
    rel_gap: float

    def __str__(self) -> str:
        return (
            f"iteration {self.iteration:3d}  {self.stage:6}  objective {self.objective:.10g}  "
            f"relative gap {self.rel_gap:.2e}"
        )


@dataclass
class Passes:
    """Passes over the samples, with their history.

    `point` is the machine after the last pass, with its `certificate`.
    """

    machine: BlockNormMachine
    tol: float
    rng: np.random.Generator
    observer: Callable[[Any], bool]
    point: DualPoint = field(init=False)
    certificate: Certificate = field(init=False)
    history: list[_Pass] = field(init=False, default_factory=list)
    _stopped: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        m = len(self.machine.labels)
        self.point = self.machine.point(np.zeros((self.machine.n_classes, m)))
        self.certificate = self.point.certificate(self.tol)

    @property
    def importances(self) -> np.ndarray:
        """Weights of the samples, with mean 1."""
        penalties = self.machine.penalties
        return penalties / penalties.mean()

    def _orders(self, n_passes: int) -> Iterator[np.ndarray]:
        """Yield a random order of the samples for each pass, until a callback stops the fit."""
        for _ in range(n_passes):
            if self._stopped:
                return
            yield self.rng.permutation(len(self.machine.labels))

    def _record(self, stage: str, point: DualPoint, bound: DualPoint | None = None) -> None:
        self.point = point
        self.certificate = point.certificate(self.tol, bound)
        done = _Pass(len(self.history), stage, self.certificate.primal, self.certificate.rel_gap)
        self.history.append(done)
        self._stopped |= self.observer(done)

    def _state(self) -> tuple[np.ndarray, ...]:
        """Return copies of F, d and squares, which steps modify."""
        point = self.point
        return point.products.copy(), point.d.copy(), point.squares.copy()

    def _record_steps(self, stage: str, d: np.ndarray) -> None:
        """Record a pass with coefficients that need not be feasible."""
        machine = self.machine
        self._record(stage, machine.point(d.copy()), machine.point(machine.feasible(d)))

    def online(self, n_epochs: int) -> None:
        """Run stage 1, which ends early if no sample is inside the margin."""
        from ._obscure_loops import online_epoch

        machine = self.machine
        lengths = self._lengths()
        if not lengths.max() > 0.0:
            return
        steps = self.importances / (machine.q * float(lengths.max()) ** 2)
        F, d, squares = self._state()
        for order in self._orders(n_epochs):
            n_updates = online_epoch(
                machine.matrices,
                F,
                d,
                squares,
                machine.labels,
                order,
                steps,
                machine.q,
                machine.unit,
            )
            self._record_steps("online", d)
            if n_updates == 0:
                return

    def batch(self, n_epochs: int) -> None:
        """Run stage 2."""
        from ._obscure_loops import batch_epoch

        machine = self.machine
        # λ and F of the paper are divided by N C; λ/F is the same.
        total = float(machine.penalties.sum())
        radius = float(np.sqrt(2.0 * min(self.certificate.primal, total)))
        F, d, squares = self._state()
        clock = np.zeros(2)
        for order in self._orders(n_epochs):
            batch_epoch(
                machine.matrices,
                F,
                d,
                squares,
                machine.labels,
                order,
                self.importances,
                machine.q,
                machine.unit,
                1.0 / total,
                radius,
                clock,
            )
            self._record_steps("batch", d)

    def exact(self, n_passes: int) -> None:
        """Run stage 3, which ends when the gap is far below `tol` and Newton steps end.

        Newton steps are tried when the passes have taken as many operations, or at the end.
        """
        from ._obscure_loops import ascend

        machine = self.machine
        if n_passes:
            self.point = machine.point(machine.feasible(self.point.d))
        done = 0
        for order in self._orders(n_passes):
            F, d, squares = self._state()
            u = machine.slacks(d)
            ascend(
                machine.matrices,
                F,
                u,
                squares,
                machine.labels,
                machine.penalties,
                order,
                machine.q,
                machine.unit,
                machine.min_curvature,
            )
            done += F.size * len(order)
            point, exhausted = machine.point(machine.coefficients(u)), False
            if self._is_close(point) or point.n_free**3 <= done:
                point, exhausted = point.refined()
                done = 0
            self._record("exact", point)
            if exhausted and self._is_close(point):
                return

    def _is_close(self, point: DualPoint) -> bool:
        """Return whether the gap is far below `tol`, or within its rounding error."""
        certificate = point.certificate(self.tol)
        enough = INNER_SHARE * self.tol * certificate.primal
        return certificate.gap <= max(enough, certificate.rounding)

    def _lengths(self) -> np.ndarray:
        """Return ``‖z_i‖_{2,s}`` of every sample."""
        machine = self.machine
        squares = 2.0 * machine.unit * machine.kernels.row_diag
        support = machine.domain.support
        return np.sqrt(2.0 * np.array([support(0.5 * column) for column in squares.T]))

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes."""
        return {
            "certificate_": self.certificate,
            "n_iter_": len(self.history),
            "n_inner_solves_": len(self.history),
            "history_": {
                "n_inner_solves": [done.iteration + 1 for done in self.history],
                "stage": [done.stage for done in self.history],
                "objective": [done.objective for done in self.history],
                "rel_gap": [done.rel_gap for done in self.history],
            },
        }

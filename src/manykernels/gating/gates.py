"""Gates: how much each kernel counts at a sample, as a function of its gating features.

Gönen & Alpaydın (2013) combine P kernels with weights that depend on the sample,

    k_η(x_i, x_j) = Σ_p η_p(x_i) k_p(x_i, x_j) η_p(x_j)                 (below (8) in the paper).

A gate is the formula of η. It maps x, the m × D matrix of gating features, in two steps: to
scores A (m × P), then to outputs η (m × P). The parameters are one row for each kernel,
V (P × (D+1)); optimisers see them as the vector θ = V.ravel(). Numbers in brackets are equations
of the paper. Gates that are constant in groups of samples follow below.

    gate         row of V        score a_ip              output η_ip            equation
    softmax      (v_p, v_p0)     ⟨v_p, x_i⟩ + v_p0       exp a_ip / Σ_h exp a_ih    (3)
    sigmoid      (v_p, v_p0)     ⟨v_p, x_i⟩ + v_p0       1 / (1 + exp −a_ip)        (4)
    Gaussian     (μ_p, log σ_p)  −‖x_i − μ_p‖² / σ_p²    exp a_ip / Σ_h exp a_ih    (5)

The logarithm keeps σ positive for all steps. Softmax and Gaussian gates let kernels compete: their
outputs sum to one. The sigmoid gate lets several kernels count at the same sample.

Let J be any function of η with gradient E = ∂J/∂η. The chain rule goes back the same two steps.
From η to A, with R = ∂J/∂A:

    competing:   R_ip = Σ_h E_ih η_ih (δ_ph − η_ip) = η_ip (E_ip − Σ_h E_ih η_ih)
    sigmoid:     R_ip = E_ip η_ip (1 − η_ip)

and from A to V:

    linear:      ∂J/∂v_p = Σ_i R_ip x_i                       ∂J/∂v_p0 = Σ_i R_ip
    Gaussian:    ∂J/∂μ_p = 2 Σ_i R_ip (x_i − μ_p) / σ_p²
                 ∂J/∂log σ_p = σ_p ∂J/∂σ_p = 2 Σ_i R_ip ‖x_i − μ_p‖² / σ_p²

With E of a support vector machine, these are the gradients in section 2.3 of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.special import expit, logit, softmax
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..kernels.tables import Table
from ..utils.numerics import EPS, one_blas_thread
from ..utils.sklearn import HasMethods, Interval, Options, StrOptions, num_samples
from ..utils.storable import storable
from .features import LARGEST, GatingFeatures

Array = NDArray[np.float64]
Rng = np.random.Generator | np.random.RandomState

# Bound on the logarithms of widths: e²⁰⁰ is the other factor in the bound of `LARGEST`.
_LARGEST_LOG_WIDTH = 100.0
# η(1 − η), the derivative of an output by its score, below which a gate counts as saturated. The
# decrease of J that a gradient step predicts is of second order in it: a rounding error.
_SATURATED = EPS**0.5
# Smallest output of a gate that starts at given kernel weights, and smallest distance from one.
# Its square is a millionth of a kernel, and gates of this output are still far from saturated.
_LEAST_OUTPUT = 1e-3


@dataclass(kw_only=True, eq=False, repr=False)
class Gate(BaseEstimator):  # type: ignore[misc]
    """Formula of a gate, and how its parameters θ are learnt.

    Its parameters are those of a scikit-learn estimator, so that a grid search can vary them:
    ``gating__penalty`` and so on. They are checked by ``fit`` of the estimator with the gate. The
    two steps from features to outputs are those of the softmax gate. A new gate overrides one or
    both of them together with its gradient, and is added to `GATES`.

    Parameters
    ----------
    features : None, columns, int, transformer, kernel or KernelComponents, default=None
        Input of the gate: columns of X (all of them: ``slice(None)``), a number of principal
        components of X, the output of a transformer, or similarities with the training samples by
        a kernel. A pair (columns, transformer) or (columns, kernel) uses these columns only. None
        is the first five principal components of the mean kernel,
        :class:`~manykernels.gating.KernelComponents`. With several views, the name of a view, or
        any of the above for all their columns. With precomputed kernels, the name of a kernel
        (similarities by it), or any of the above for the table of
        :meth:`KernelStack.with_features`, which is then the default.
    penalty : float, list of float or "auto", default="auto"
        Strength of a ridge on the parameters θ, relative to the objective, that draws the gate to
        the constant one of plain multiple kernel learning. The paper has none, 0. "auto" is
        0.003. Estimators with CV choose from a list, in which inf is plain multiple kernel
        learning; "auto" is inf, 0.03 and 0.003.
    early_stopping : int, default=3
        Number of folds whose held-out samples decide after how many steps the descent stops. Step
        0 is plain multiple kernel learning (exactly with the sigmoid gate, else at a smaller C;
        not if the start is "random"), which remains where no step clearly helps these samples.
        0: the descent ends where the objective stops changing. Not used by one-class machines,
        whose outputs cannot be judged, and by estimators with CV, which choose a penalty instead.
    start : {"weights", "random"}, default="weights"
        Where the descent starts: near the constant gate of plain multiple kernel learning, or at
        random parameters, where all kernels count about the same (step 1 of the paper's
        algorithm). Gaussian gates cannot be constant and always start at random.
    n_init : int, default=1
        Number of random starts, of which the one with the lowest objective is kept. Estimators
        with CV have one, because each gate starts from the one before.
    scale : float, default=0.01
        Parameters start uniformly distributed in ±scale, as in the authors' programs, from the
        constant gate or, at random, from zero. With 0, copies of one kernel would stay equal.
    quasi_newton : bool, default=True
        True: steps of L-BFGS, which needs far fewer of them than the gradient descent of the
        paper. False: gradient steps.
    max_iter : int, default=200
        Maximum number of steps.
    threshold : float in [0, 1), default=1e-6
        A prediction evaluates a kernel only where its gate is above this at both samples; unless
        `missing` is "error", everywhere.
    random_state : int, RandomState or None, default=0
        Random numbers of the starts.
    """

    features: Any = None
    penalty: float | Sequence[float] | str = "auto"
    early_stopping: int = 3
    start: str = "weights"
    n_init: int = 1
    scale: float = 0.01
    quasi_newton: bool = True
    max_iter: int = 200
    threshold: float = 1e-6
    random_state: int | np.random.RandomState | None = 0

    name: ClassVar[str]
    #: Names of the first D columns of V and of its last one.
    parts: ClassVar[tuple[str, ...]] = ("weights", "bias")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [Interval(Real, 0, None, closed="both"), "array-like", StrOptions({"auto"})],
        "early_stopping": [Interval(Integral, 2, None, closed="left"), Options(Integral, {0})],
        "start": [StrOptions({"weights", "random"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "scale": [Interval(Real, 0, None, closed="left")],
        "quasi_newton": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "threshold": [Interval(Real, 0, 1, closed="left")],
        "random_state": ["random_state"],
    }

    def transformer(self, features: object) -> TransformerMixin:
        """Return the unfitted transformer of a table into the input of this gate.

        `features` are the parameter of this name, or None for all columns of the table.
        ``fit_transform`` returns the features of the training rows, ``transform`` those of new
        rows.
        """
        return GatingFeatures(features)

    def anchor(self, weights: Array, n_features: int) -> Array | None:
        """Return θ of the constant gate that is nearest to plain multiple kernel learning.

        With ``η_p ∝ √β_p`` everywhere K_η is a multiple of ``Σ_p β_p K_p``; `weights` are β. None
        if the gate cannot be constant.
        """
        scores = self._scores_of(np.sqrt(weights))
        return self._constant(scores, n_features).ravel()

    def initial(
        self, features: Array, n_kernels: int, rng: Rng, anchor: Array | None = None
    ) -> Array:
        """Draw an initial θ (step 1 of Algorithm 1), (n_kernels * (D + 1),), near `anchor`.

        `features` are those of the training rows (m × D), standardised.
        """
        features = _checked_features(features)
        n_rows = features.shape[0]
        if n_kernels < 1 or n_rows < 1:
            raise ValueError(
                "A gate needs at least one kernel and one training row, got "
                f"{n_kernels} kernels and {n_rows} rows."
            )
        theta = self._initial(features, n_kernels, rng).ravel()
        return theta if anchor is None else anchor + theta

    def outputs(self, theta: ArrayLike, features: Array) -> Array:
        """Return η (m × P) of the rows of `features`; P follows from the length of `theta`."""
        features = _checked_features(features)
        V = self._clipped(self._matrix(theta, features.shape[1]))
        return self._link(self._scores(V, features))

    def pull_back(
        self, theta: ArrayLike, features: Array, outputs: Array, gradient: Array
    ) -> Array:
        """Return ∂J/∂θ given ``gradient`` = ∂J/∂η (m × P) at the `outputs` of `theta`.

        This is the vector-Jacobian product of the gate.
        """
        features = _checked_features(features)
        unclipped = self._matrix(theta, features.shape[1])
        expected = (features.shape[0], len(unclipped))
        if outputs.shape != expected or gradient.shape != expected:
            raise ValueError(
                f"outputs and gradient must have shape (rows, kernels) = {expected}, got "
                f"{outputs.shape} and {gradient.shape}."
            )
        V = self._clipped(unclipped)
        V_gradient = self._scores_gradient(V, features, self._link_gradient(outputs, gradient))
        # Where a parameter was clipped, the outputs no longer depend on it.
        return np.where(unclipped == V, V_gradient, 0.0).ravel()

    def saturated(self, outputs: Array) -> bool:
        """Return True if all `outputs` are so near 0 or 1 that every gradient vanishes.

        Different samples may use different kernels even then.
        """
        return bool((outputs * (1.0 - outputs) <= _SATURATED).all())

    def coefficients(self, theta: ArrayLike, n_features: int) -> dict[str, Array]:
        """Return the parameters by name, one row for each kernel."""
        V = self._clipped(self._matrix(theta, n_features))
        return dict(zip(self.parts, (V[:, :-1], V[:, -1]), strict=True))

    def row_length(self, n_features: int) -> int:
        """Return the number of parameters of each kernel, the columns of V."""
        return n_features + 1

    def _matrix(self, theta: ArrayLike, n_features: int) -> Array:
        """Return θ as V, one row for each kernel."""
        theta = np.asarray(theta, dtype=np.float64)
        length = self.row_length(n_features)
        if theta.ndim != 1 or theta.size == 0 or theta.size % length:
            raise ValueError(
                f"Gate parameters of {n_features} features are a flat array of {length} "
                f"numbers for each kernel, got shape {theta.shape}."
            )
        if not np.isfinite(theta).all():
            raise ValueError("Gate parameters must be finite, got NaN or infinity.")
        return theta.reshape(-1, length)

    # -- steps that a gate may override, their gradients, start and bounds ---------------------

    def _scores(self, V: Array, x: Array) -> Array:
        """Return the scores A (m × P), here linear in the features."""
        # BLAS takes two thirds of the time of x @ V.T in this order, because P is small.
        return np.asarray((V[:, :-1] @ x.T).T + V[:, -1])

    def _scores_gradient(self, V: Array, x: Array, R: Array) -> Array:
        """Return ∂J/∂V (P × (D+1)) from R = ∂J/∂A."""
        return np.column_stack([R.T @ x, R.sum(axis=0)])

    def _link(self, scores: Array) -> Array:
        """Return η (m × P) of the scores A, here of competing kernels."""
        return np.asarray(softmax(scores, axis=1))

    def _link_gradient(self, eta: Array, E: Array) -> Array:
        """Return R = ∂J/∂A from E = ∂J/∂η."""
        return np.asarray(eta * (E - (E * eta).sum(axis=1, keepdims=True)))

    def _scores_of(self, roots: Array) -> Array:
        """Return the scores a_p of the constant gate with outputs proportional to `roots`."""
        # A kernel of weight zero gets a small output, so that there is a gradient.
        return np.asarray(np.log(np.maximum(roots / roots.sum(), _LEAST_OUTPUT)))

    def _constant(self, scores: Array, n_features: int) -> Array:
        """Return V of the gate with constant scores."""
        V = np.zeros((len(scores), self.row_length(n_features)))
        V[:, n_features:] = scores[:, None]
        return V

    def _initial(self, x: Array, n_kernels: int, rng: Rng) -> Array:
        n_features = x.shape[1]
        V = self.scale * rng.uniform(-1.0, 1.0, (n_kernels, self.row_length(n_features)))
        # Weights of a zero column have no effect and no gradient: they would stay random.
        V[:, :n_features] *= (x != 0.0).sum(axis=0) > 0
        return V

    def _clipped(self, V: Array) -> Array:
        return np.clip(V, -LARGEST, LARGEST)


@storable
@dataclass(kw_only=True, eq=False, repr=False)
class Softmax(Gate):
    """Gate of competing kernels: hyperplanes divide the space into regions of mostly one.

    Equation (3) of Gönen and Alpaydın (2013). The parameters are those of
    :class:`~manykernels.gating.Gate`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.gating import Softmax
    >>> gate, x = Softmax(), np.array([[-2.0], [0.0], [2.0]])
    >>> theta = np.array([-1.0, 0.0, 1.0, 0.0])  # v_1, v_10, v_2, v_20
    >>> gate.outputs(theta, x).round(3)
    array([[0.982, 0.018],
           [0.5  , 0.5  ],
           [0.018, 0.982]])
    >>> gate.coefficients(theta, n_features=1)["weights"]
    array([[-1.],
           [ 1.]])
    """

    name: ClassVar[str] = "softmax"


@storable
@dataclass(kw_only=True, eq=False, repr=False)
class Sigmoid(Gate):
    """Gate of cooperating kernels: each counts in a half-space, with a gradual border.

    Equation (4) of Gönen and Alpaydın (2013). The parameters are those of
    :class:`~manykernels.gating.Gate`.

    Its outputs can be the roots of any kernel weights up to one: it starts at plain multiple
    kernel learning, with the same C.

    Examples
    --------
    With the scores −x and 3 the second kernel counts everywhere, the first on the left:

    >>> import numpy as np
    >>> from manykernels.gating import Sigmoid
    >>> x = np.array([[-2.0], [0.0], [2.0]])
    >>> Sigmoid().outputs(np.array([-1.0, 0.0, 0.0, 3.0]), x).round(3)
    array([[0.881, 0.953],
           [0.5  , 0.953],
           [0.119, 0.953]])
    """

    name: ClassVar[str] = "sigmoid"

    def _scores_of(self, roots: Array) -> Array:
        # Outputs need not sum to one: they are the roots. Where all kernels count fully, as a
        # single one does, no gate can open further, and J falls as gates open.
        if (roots >= 1.0 - EPS).all():
            return np.full(len(roots), LARGEST)
        return np.asarray(logit(np.clip(roots, _LEAST_OUTPUT, 1.0 - _LEAST_OUTPUT)))

    def _link(self, scores: Array) -> Array:
        return np.asarray(expit(scores))

    def _link_gradient(self, eta: Array, E: Array) -> Array:
        return eta * (1.0 - eta) * E


@storable
@dataclass(kw_only=True, eq=False, repr=False)
class Gaussian(Gate):
    """Gate of competing kernels: each counts around a centre.

    Equation (5) of Gönen and Alpaydın (2013). Further parameters are those of
    :class:`~manykernels.gating.Gate`.

    The centres start at random samples far from each other, with the same width. (The authors'
    programs start with width 1, where gradients vanish if there are many features.)

    Parameters
    ----------
    scale : float, default=0.01
        Coordinates of the centres are moved by at most `scale`, so that no two centres are equal.
    width : float, default=1.0
        Initial width, in units of the root mean square distance of samples from centres.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.gating import Gaussian
    >>> gate, x = Gaussian(), np.array([[-1.0], [0.0], [1.0]])
    >>> theta = np.array([-1.0, 0.0, 1.0, 0.0])  # μ_1, log σ_1, μ_2, log σ_2
    >>> gate.outputs(theta, x).round(3)
    array([[0.982, 0.018],
           [0.5  , 0.5  ],
           [0.018, 0.982]])
    >>> gate.coefficients(theta, n_features=1)["widths"]
    array([1., 1.])
    """

    width: float = 1.0

    name: ClassVar[str] = "gaussian"
    parts: ClassVar[tuple[str, ...]] = ("centres", "widths")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Gate._parameter_constraints,
        "width": [Interval(Real, 0, None, closed="neither")],
    }

    def anchor(self, weights: Array, n_features: int) -> None:
        """Return None: this gate is constant only if all centres and widths are equal."""

    def coefficients(self, theta: ArrayLike, n_features: int) -> dict[str, Array]:
        """Return ``{"centres": (P × D), "widths": (P,)}``, with σ and not its logarithm."""
        centres, log_widths = super().coefficients(theta, n_features).values()
        return {"centres": centres, "widths": np.exp(log_widths)}

    def _scores(self, V: Array, x: Array) -> Array:
        return np.asarray(-cdist(x, V[:, :-1], "sqeuclidean") * np.exp(-2.0 * V[:, -1]))

    def _scores_gradient(self, V: Array, x: Array, R: Array) -> Array:
        weighted_differences = R.T @ x - R.sum(axis=0)[:, None] * V[:, :-1]
        centres = 2.0 * np.exp(-2.0 * V[:, -1:]) * weighted_differences
        log_widths = -2.0 * (R * self._scores(V, x)).sum(axis=0)
        return np.column_stack([centres, log_widths])

    def _initial(self, x: Array, n_kernels: int, rng: Rng) -> Array:
        from sklearn.cluster import kmeans_plusplus  # slow to import

        V = super()._initial(x, n_kernels, rng)
        # k-means++ (Arthur & Vassilvitskii 2007); with fewer rows than centres, rows are repeated.
        rows = np.resize(x, (max(len(x), n_kernels), x.shape[1]))
        centres, _ = kmeans_plusplus(rows, n_kernels, random_state=int(rng.choice(2**31)))
        V[:, :-1] += centres
        distance = float(np.sqrt(cdist(x, V[:, :-1], "sqeuclidean").mean()))
        V[:, -1] = math.log(self.width * (distance or 1.0))
        return V

    def _clipped(self, V: Array) -> Array:
        V = super()._clipped(V)
        V[:, -1] = np.clip(V[:, -1], -_LARGEST_LOG_WIDTH, _LARGEST_LOG_WIDTH)
        return V


def _checked_features(features: Array) -> Array:
    if getattr(features, "ndim", None) != 2:
        raise ValueError(
            "Gating features must be a two-dimensional array (rows, features), got "
            f"{type(features).__name__} of shape {np.shape(features)}."
        )
    return features


# -- Gates that are constant in groups: kernel weights for each cluster or sample -----------------
#
# Yang et al. learn weights for clusters of the training samples (2009) or for every training
# sample (2010), in the notation of Gönen & Alpaydın (2013, section 4.5):
#
#     k_η(x_i, x_j) = Σ_p η_p(c_i) k_p(x_i, x_j) η_p(c_j)        with c_i the cluster of x_i.
#
# Samples of different clusters are compared too, by the kernels that count in both. This is a
# gate whose features are indicators: x_ic = 1 if sample i is in cluster c, else 0. The score of
# kernel p in cluster c is the parameter V_pc, and there is no bias, which would be redundant:
#
#     A = x Vᵀ            ∂J/∂V = Rᵀ x            η = softmax of A.
#
# The outputs are those of competing kernels: not negative, with sum one in each cluster. The
# authors alternate between a machine and a program in its kernel weights; here the weights follow
# the gradient of J, as in all gates.


# Decimals to which features of standard deviation one are distinguished: the squares of smaller
# differences are lost in the rounding errors of squared distances.
_DECIMALS = 8
# Number of starts of k-means, of which the best is kept. They cost little beside a descent.
_N_STARTS = 10


@dataclass(kw_only=True, eq=False, repr=False)
class GroupGate(Gate):
    """Gate on indicators of groups: V has a column for each group, and no bias."""

    parts: ClassVar[tuple[str, ...]] = ("outputs",)

    def row_length(self, n_features: int) -> int:
        """Return the number of groups: one parameter for each."""
        return n_features

    def coefficients(self, theta: ArrayLike, n_features: int) -> dict[str, Array]:
        """Return ``{"outputs": (P × groups)}``, the outputs of each kernel in each group."""
        V = self._clipped(self._matrix(theta, n_features))
        return {"outputs": self._link(V.T).T}

    def _constant(self, scores: Array, n_features: int) -> Array:
        return np.tile(scores[:, None], n_features)

    def _scores(self, V: Array, x: sparse.csr_array) -> Array:
        return np.asarray(x @ V.T)

    def _scores_gradient(self, V: Array, x: sparse.csr_array, R: Array) -> Array:
        return np.asarray(R.T @ x)


@storable
@dataclass(kw_only=True, eq=False, repr=False)
class PerCluster(GroupGate):
    """Kernel weights for each cluster of samples (Yang et al. 2009).

    The gating features of the training samples are clustered. A new sample belongs to the
    cluster with the nearest centre, at any distance. Further parameters are those of
    :class:`~manykernels.gating.Gate`.

    Parameters
    ----------
    n_clusters : int, default=5
        Number of clusters of k-means, which is deterministic. There are fewer clusters if there
        are fewer distinct training samples.
    clusterer : object with ``fit`` and ``predict``, default=None
        Clusterer used instead of k-means, such as scikit-learn's ``GaussianMixture``. A clone is
        fitted on standardised gating features. In new samples of a cluster without training
        samples, all kernels count the same.

    Notes
    -----
    Known groups can be used as clusters: ``features=(["site"], OneHotEncoder())`` with at least
    as many clusters as sites has one cluster for each site.

    References
    ----------
    J. Yang, Y. Li, Y. Tian, L. Duan, W. Gao. Group-sensitive multiple kernel learning for object
    categorization. International Conference on Computer Vision, 2009.

    Examples
    --------
    Two straight lines, each correct on one side:

    >>> import numpy as np
    >>> from manykernels import LocalizedSVC
    >>> from manykernels.gating import PerCluster
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> side = np.repeat([0, 1], 100)
    >>> X = np.column_stack([20.0 * side, rng.uniform(-1, 1, (200, 2))])
    >>> y = np.where(side, X[:, 1], X[:, 2]) > 0
    >>> model = LocalizedSVC(
    ...     [("b", Linear().on([1])), ("c", Linear().on([2]))],
    ...     gating=PerCluster(n_clusters=2, features=[0]),
    ...     normalize=None,
    ...     C=100.0,
    ... ).fit(X, y)
    >>> model.gate(X[[0, 199]]).argmax(axis=1)
    array([1, 0])
    >>> model.gating_coef_["outputs"].shape
    (2, 2)
    """

    n_clusters: int = 5
    clusterer: Any = None

    name: ClassVar[str] = "cluster"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Gate._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "clusterer": [HasMethods(["fit", "predict"]), None],
    }

    def _validate_params(self) -> None:
        super()._validate_params()
        if isinstance(self.clusterer, type):
            name = self.clusterer.__name__
            raise TypeError(f"clusterer={name} is a class; pass an instance, {name}(...).")

    def transformer(self, features: object) -> TransformerMixin:
        """Return the transformer into indicators of clusters."""
        clusterer = Centres(self.n_clusters) if self.clusterer is None else self.clusterer
        return ClusterIndicators(features, clusterer)


@storable
@dataclass(kw_only=True, eq=False, repr=False)
class PerSample(GroupGate):
    """Kernel weights for every training sample, and equal weights for new samples.

    The method of Yang et al. (2010). The weights of single samples do not generalise to others: in
    a new sample all P kernels count 1/P, as in the paper. The training samples are treated as new
    ones when they are passed to ``predict`` or ``gate``; their learnt outputs are in
    ``gating_coef_["outputs"]``, one column for each training sample (of positive weight).
    The parameters are those of :class:`~manykernels.gating.Gate`; `features` is ignored.

    Notes
    -----
    There are as many gates as samples, so that the objective can fall far without any gain for
    new samples; :class:`PerCluster` learns from several samples at a time. A sample of weight two
    has one gate, unlike two equal samples.

    References
    ----------
    J. Yang, Y. Li, Y. Tian, L. Duan, W. Gao. Per-sample multiple kernel approach for visual
    concept learning. EURASIP Journal on Image and Video Processing, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import LocalizedSVR
    >>> from manykernels.kernels import RBF
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> kernels = [("wide", RBF(0.1)), ("narrow", RBF(1.0))]
    >>> model = LocalizedSVR(kernels, gating="instance").fit(X, np.sin(X[:, 0]))
    >>> model.gating_coef_["outputs"].shape
    (2, 30)
    >>> model.gate([[1.5]])
    array([[0.5, 0.5]])
    """

    name: ClassVar[str] = "instance"

    def transformer(self, features: object) -> TransformerMixin:
        """Return indicators of the training samples."""
        return RowIndicators()


# -- indicators ----------------------------------------------------------------------------------


@storable
class ClusterIndicators(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Indicators of clusters: each row becomes a sparse row with a single 1.

    Parameters
    ----------
    features : default=None
        Features to cluster, as in :class:`GatingFeatures`.
    clusterer : object with ``fit`` and ``predict``, default=None
        Clusterer, by default :class:`Centres`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_clusters,)
        Labels of the clusters with training rows. Rows of other clusters are zero.
    """

    reads_table: ClassVar[bool] = True

    def __init__(self, features: Any = None, clusterer: Any = None) -> None:
        self.features = features
        self.clusterer = clusterer

    def fit(self, X: Table, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the clusters of the training rows."""
        self._features = GatingFeatures(self.features).fit(X, y, sample_weight)
        clusterer = Centres() if self.clusterer is None else clone(self.clusterer)
        weighted = has_fit_parameter(clusterer, "sample_weight")
        weights = {"sample_weight": sample_weight} if weighted else {}
        self._clusterer = clusterer.fit(self._features.transform(X), **weights)
        self.labels_ = np.unique(self._labels(X))
        return self

    def transform(self, X: Table) -> Any:
        """Return the indicators (rows × clusters) of the rows of `X`."""
        check_is_fitted(self, "labels_")
        labels = self._labels(X)
        rows, columns = np.nonzero(labels[:, None] == self.labels_)
        return _indicators(rows, columns, (len(labels), len(self.labels_)))

    def _labels(self, X: Table) -> np.ndarray:
        features = self._features.transform(X)
        # Scikit-learn's clusterers raise an error for a table without rows.
        return np.asarray(self._clusterer.predict(features)) if len(features) else np.empty(0)


@storable
class RowIndicators(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Indicators of training rows: a 1 for each training row, and zeros for new rows.

    Rows are identified by their position alone: ``fit_transform`` takes the training rows,
    ``transform`` new rows, whatever their values.

    Attributes
    ----------
    n_rows_ : int
        Number of training rows.
    """

    reads_table: ClassVar[bool] = False

    def fit(self, X: Table, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Count the training rows."""
        self.n_rows_ = num_samples(X)
        if self.n_rows_ < 2:
            raise ValueError(f"A gate cannot be learnt from {self.n_rows_} sample(s).")
        return self

    def fit_transform(
        self, X: Table, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Any:
        """Return the identity matrix, the indicators of the training rows."""
        every = np.arange(self.fit(X).n_rows_)
        return _indicators(every, every, (len(every), len(every)))

    def transform(self, X: Table) -> Any:
        """Return zeros (rows × training rows)."""
        check_is_fitted(self, "n_rows_")
        none = np.empty(0, dtype=np.intp)
        return _indicators(none, none, (num_samples(X), self.n_rows_))


@storable
class Centres(BaseEstimator):  # type: ignore[misc]
    """K-means clusters: a row belongs to the nearest centre.

    Unlike in scikit-learn's ``KMeans``, the prediction for a row never depends on the other rows,
    nor on how far away it is.

    Attributes
    ----------
    centres_ : ndarray of shape (n_centres, n_features)
        At most `n_clusters` centres, and no more than there are distinct rows.
    """

    def __init__(self, n_clusters: int = 5) -> None:
        self.n_clusters = n_clusters

    def fit(self, x: Array, sample_weight: ArrayLike | None = None) -> Self:
        """Find the centres of standardised features."""
        from sklearn.cluster import k_means  # slow to import

        # Equal rows are one row with the sum of their weights: the result does not depend on the
        # order of rows, nor on whether a row is repeated or has a weight of two.
        distinct, which = np.unique(x.round(_DECIMALS), axis=0, return_inverse=True)
        weights = np.bincount(which.ravel(), weights=sample_weight).astype(np.float64)
        if len(distinct) <= self.n_clusters:
            self.centres_ = distinct
        else:
            options = {"n_init": _N_STARTS, "random_state": 0}
            # scikit-learn limits BLAS to one thread here, and would restore the limit of another
            # fit that runs at the same time.
            with one_blas_thread():
                result = k_means(distinct, self.n_clusters, sample_weight=weights, **options)
            self.centres_ = result[0]
        return self

    def predict(self, x: Array) -> np.ndarray:
        """Return the indices of the nearest centres."""
        # ½‖x − c‖² without ½‖x‖², in which the rest would be lost for rows very far away. Sums
        # of einsum, unlike matrix products, do not depend on the number of rows.
        products = np.einsum("ij,kj->ik", x, self.centres_)
        distances = 0.5 * (self.centres_**2).sum(axis=1) - products
        return np.asarray(distances.argmin(axis=1))


def _indicators(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Any:
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


# -- Gates by name --------------------------------------------------------------------------------


GATES: dict[str, type[Gate]] = {
    gate.name: gate for gate in (Softmax, Sigmoid, Gaussian, PerCluster, PerSample)
}


#: Strength of the penalty of "auto".
DEFAULT_PENALTY = 0.003


def as_gate(gate: str | Gate) -> Gate:
    """Return the gate of this name with default parameters; a :class:`Gate` is returned as is.

    Examples
    --------
    >>> from manykernels.gating.gates import as_gate
    >>> as_gate("sigmoid")
    Sigmoid()
    """
    if isinstance(gate, Gate):
        return gate
    accepted = f"a gate is one of {', '.join(map(repr, GATES))}, or a Gate instance"
    if not isinstance(gate, str):
        raise TypeError(f"{gate!r} is not a gate: {accepted}.")
    if gate not in GATES:
        raise ValueError(f"There is no gate named {gate!r}: {accepted}.")
    return GATES[gate]()

"""Gates: how much each kernel counts at a sample, as a function of its gating features.

Gönen & Alpaydın (2013) combine P kernels with weights that depend on the sample,

    k_η(x_i, x_j) = Σ_p η_p(x_i) k_p(x_i, x_j) η_p(x_j)                 (below (8) in the paper).

A gate is the formula of η. It maps x, the m × D matrix of gating features, in two steps: to
scores A (m × P), then to outputs η (m × P). The parameters are one row for each kernel,
V (P × (D+1)); optimisers see them as the vector θ = V.ravel(). Numbers in brackets are equations
of the paper. (Gates that are constant in groups of samples are in `indicators.py`.)

    gate         row of V        score a_ip              output η_ip            equation
    softmax      (v_p, v_p0)     ⟨v_p, x_i⟩ + v_p0       exp a_ip / Σ_h exp a_ih    (3)
    sigmoid      (v_p, v_p0)     ⟨v_p, x_i⟩ + v_p0       1 / (1 + exp −a_ip)        (4)
    Gaussian     (μ_p, log σ_p)  −‖x_i − μ_p‖² / σ_p²    exp a_ip / Σ_h exp a_ih    (5)

The logarithm keeps σ positive whatever step is taken. Softmax and Gaussian gates let kernels
compete: their outputs sum to one. The sigmoid gate lets several kernels count at the same sample.

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
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.special import expit, logit, softmax

from .._rounding import EPS
from .features import LARGEST, GatingFeatures

Array = NDArray[np.float64]
Rng = np.random.Generator | np.random.RandomState

# Logarithms of widths are clipped to this: e²⁰⁰ is the other factor in the bound of `LARGEST`.
_LARGEST_LOG_WIDTH = 100.0
# η(1 − η), the derivative of an output by its score, below which a gate counts as saturated. The
# decrease of J that a gradient step predicts is of second order in it: a rounding error.
_SATURATED = EPS**0.5
# Least output of a gate that starts at given kernel weights, and its least distance from one. The
# square of it is a millionth of a kernel, and gates of this output are still far from saturated.
_LEAST_OUTPUT = 1e-3


@dataclass(frozen=True)
class Gate:
    """The formula of a gate: it holds no data and no parameters θ.

    The two steps from features to outputs are those of the softmax gate. A new gate overrides one
    or both of them together with its gradient, and is added to `GATES` (`names.py`).

    Parameters
    ----------
    scale : float, default=0.01
        Parameters start uniformly distributed in ±scale, as in the authors' own programs: all
        kernels then count about the same everywhere. With 0, copies of one kernel would stay
        equal.
    """

    scale: float = 0.01

    name: ClassVar[str]
    #: What the first D columns of V and its last one hold.
    parts: ClassVar[tuple[str, ...]] = ("weights", "bias")

    def __post_init__(self) -> None:
        if not 0.0 <= self.scale < math.inf:
            raise ValueError(f"scale must be finite and not negative, got {self.scale!r}.")

    def features(self, what: Any) -> Any:
        """What makes the input of this gate from a table; `what` is ``gating_features``.

        An unfitted transformer: ``fit_transform`` gives the features of the training rows,
        ``transform`` those of new ones.
        """
        return GatingFeatures(what)

    def anchor(self, weights: Array, n_features: int) -> Array | None:
        """θ of the constant gate that is plain multiple kernel learning, as near as it can come.

        With ``η_p ∝ √β_p`` everywhere K_η is a multiple of ``Σ_p β_p K_p``; `weights` are β. None
        if the gate cannot be constant.
        """
        scores = self._scores_of(np.sqrt(weights))
        return self._constant(scores, n_features).ravel()

    def start(
        self, features: Array, n_kernels: int, rng: Rng, anchor: Array | None = None
    ) -> Array:
        """Random θ to start from (step 1 of Algorithm 1), (n_kernels * (D + 1),), near `anchor`.

        `features` are those of the training rows (m × D), standardised.
        """
        features = _checked_features(features)
        n_rows = features.shape[0]
        if n_kernels < 1 or n_rows < 1:
            raise ValueError(
                "A gate needs at least one kernel and one training row, got "
                f"{n_kernels} kernels and {n_rows} rows."
            )
        start = self._start(features, n_kernels, rng).ravel()
        return start if anchor is None else anchor + start

    def outputs(self, theta: ArrayLike, features: Array) -> Array:
        """η (m × P) of the rows of `features`; P follows from the length of `theta`."""
        features = _checked_features(features)
        V = self._clipped(self._matrix(theta, features.shape[1]))
        return self._link(self._scores(V, features))

    def pull_back(
        self, theta: ArrayLike, features: Array, outputs: Array, gradient: Array
    ) -> Array:
        """∂J/∂θ from ``gradient`` = ∂J/∂η (m × P), at ``outputs = self.outputs(theta, features)``.

        The vector-Jacobian product of the gate.
        """
        features = _checked_features(features)
        given = self._matrix(theta, features.shape[1])
        expected = (features.shape[0], len(given))
        if outputs.shape != expected or gradient.shape != expected:
            raise ValueError(
                f"outputs and gradient must have shape (rows, kernels) = {expected}, got "
                f"{outputs.shape} and {gradient.shape}."
            )
        V = self._clipped(given)
        V_gradient = self._scores_gradient(V, features, self._link_gradient(outputs, gradient))
        # Where a parameter was clipped, the outputs no longer depend on it.
        return np.where(given == V, V_gradient, 0.0).ravel()

    def saturated(self, outputs: Array) -> bool:
        """Whether all `outputs` are so near 0 or 1 that every gradient vanishes.

        Different samples may use different kernels even then.
        """
        return bool((outputs * (1.0 - outputs) <= _SATURATED).all())

    def coefficients(self, theta: ArrayLike, n_features: int) -> dict[str, Array]:
        """The parameters by name, one row for each kernel."""
        V = self._clipped(self._matrix(theta, n_features))
        return dict(zip(self.parts, (V[:, :-1], V[:, -1]), strict=True))

    def row_length(self, n_features: int) -> int:
        """How many parameters each kernel has, the columns of V."""
        return n_features + 1

    def _matrix(self, theta: ArrayLike, n_features: int) -> Array:
        """θ as V, one row for each kernel."""
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

    # -- what a gate may override: the two steps, their gradients, start and bounds ------------

    def _scores(self, V: Array, x: Array) -> Array:
        """A (m × P), here linear in the features."""
        # In this order BLAS takes two thirds of the time of x @ V.T: P is small.
        return np.asarray((V[:, :-1] @ x.T).T + V[:, -1])

    def _scores_gradient(self, V: Array, x: Array, R: Array) -> Array:
        """∂J/∂V (P × (D+1)) from R = ∂J/∂A."""
        return np.column_stack([R.T @ x, R.sum(axis=0)])

    def _link(self, scores: Array) -> Array:
        """η (m × P) of the scores A, here of competing kernels."""
        return np.asarray(softmax(scores, axis=1))

    def _link_gradient(self, eta: Array, E: Array) -> Array:
        """R = ∂J/∂A from E = ∂J/∂η."""
        return np.asarray(eta * (E - (E * eta).sum(axis=1, keepdims=True)))

    def _scores_of(self, roots: Array) -> Array:
        """Scores a_p of the constant gate with outputs in proportion to `roots`."""
        # A kernel of weight zero gets a small output, so that there is a gradient.
        return np.asarray(np.log(np.maximum(roots / roots.sum(), _LEAST_OUTPUT)))

    def _constant(self, scores: Array, n_features: int) -> Array:
        """V of the gate with these scores everywhere."""
        V = np.zeros((len(scores), self.row_length(n_features)))
        V[:, n_features:] = scores[:, None]
        return V

    def _start(self, x: Array, n_kernels: int, rng: Rng) -> Array:
        n_features = x.shape[1]
        V = self.scale * rng.uniform(-1.0, 1.0, (n_kernels, self.row_length(n_features)))
        # Weights of a column of zeros have no effect and no gradient: they would stay random.
        V[:, :n_features] *= (x != 0.0).sum(axis=0) > 0
        return V

    def _clipped(self, V: Array) -> Array:
        return np.clip(V, -LARGEST, LARGEST)


@dataclass(frozen=True)
class Softmax(Gate):
    """Competing kernels: hyperplanes divide the space into regions of mostly one kernel (3).

    Its parameter is that of :class:`Gate`.

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


@dataclass(frozen=True)
class Sigmoid(Gate):
    """Cooperating kernels: each counts in a half-space of its own, with a gradual border (4).

    Its parameter is that of :class:`Gate`. Its outputs can be the roots of any kernel weights up
    to one: it starts at plain multiple kernel learning, with the same C.

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
        # Outputs need not sum to one: they are the roots themselves. Where all kernels count
        # fully, as a single one does, no gate can open further, and J falls as gates open.
        if (roots >= 1.0 - EPS).all():
            return np.full(len(roots), LARGEST)
        return np.asarray(logit(np.clip(roots, _LEAST_OUTPUT, 1.0 - _LEAST_OUTPUT)))

    def _link(self, scores: Array) -> Array:
        return np.asarray(expit(scores))

    def _link_gradient(self, eta: Array, E: Array) -> Array:
        return eta * (1.0 - eta) * E


@dataclass(frozen=True)
class Gaussian(Gate):
    """Competing kernels: each counts around a centre of its own (5).

    The centres start at random samples far from each other, with one width for all. (The authors'
    programs start with width 1, where gradients vanish if there are many features.)

    Parameters
    ----------
    scale : float, default=0.01
        Coordinates of the centres are moved by at most this, so that no two centres are equal.
    width : float, default=1.0
        Width at the start, in units of the root mean square distance of samples from centres.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.width < math.inf:
            raise ValueError(f"width must be finite and positive, got {self.width!r}.")

    def anchor(self, weights: Array, n_features: int) -> None:
        """None: this gate is constant only if all centres and widths are the same."""

    def coefficients(self, theta: ArrayLike, n_features: int) -> dict[str, Array]:
        """``{"centres": (P × D), "widths": (P,)}``; σ itself, not its logarithm."""
        centres, log_widths = super().coefficients(theta, n_features).values()
        return {"centres": centres, "widths": np.exp(log_widths)}

    def _scores(self, V: Array, x: Array) -> Array:
        return np.asarray(-cdist(x, V[:, :-1], "sqeuclidean") * np.exp(-2.0 * V[:, -1]))

    def _scores_gradient(self, V: Array, x: Array, R: Array) -> Array:
        weighted_differences = R.T @ x - R.sum(axis=0)[:, None] * V[:, :-1]
        centres = 2.0 * np.exp(-2.0 * V[:, -1:]) * weighted_differences
        log_widths = -2.0 * (R * self._scores(V, x)).sum(axis=0)
        return np.column_stack([centres, log_widths])

    def _start(self, x: Array, n_kernels: int, rng: Rng) -> Array:
        from sklearn.cluster import kmeans_plusplus  # slow to import

        V = super()._start(x, n_kernels, rng)
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

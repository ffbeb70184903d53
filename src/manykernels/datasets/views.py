"""Handwritten digits in several views, computed from the images bundled with scikit-learn."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import check_random_state

from ..kernels import Views

if TYPE_CHECKING:
    import pandas as pd


# Shapes of the views; load_digit_views documents them.
_NOISE_COLUMNS = 16  # as many as three of the other views have
_CELLS = 2  # gradient cells along each side of the image
_BINS = 8  # gradient directions
_HIGHEST_FREQUENCY = 2


def load_digit_views(*, noise: int = 0, random_state: Any = 0) -> tuple[Views, np.ndarray]:
    """Load the handwritten digits bundled with scikit-learn as six views.

    Each view describes the same 1797 images of 8 × 8 pixels; none is scaled. Views of pure
    noise can be added, to see whether a method learns to ignore them.

    Parameters
    ----------
    noise : int, default=0
        Number of noise views, each of 16 independent standard normal columns.
    random_state : int, RandomState instance or None, default=0
        Draws the noise views. The first ones do not change when more are asked for.

    Returns
    -------
    views : Views
        Arrays of 1797 rows, in this order:

        - ``"pixels"`` (64): the grey values, 0 to 16, row by row;
        - ``"rows"`` (16): the sum of each row, then the width of the ink in it;
        - ``"columns"`` (16): the same for the columns;
        - ``"gradients"`` (32): in each quarter of the image, the total length of the
          gradients pointing in each of eight directions;
        - ``"fourier"`` (13): moduli of the two-dimensional Fourier coefficients up to
          frequency 2, which a cyclic shift of the image does not change;
        - ``"coarse"`` (16): means over blocks of 2 × 2 pixels;
        - ``"noise1"``, ``"noise2"``, ... (16 each): noise.
    y : ndarray of shape (1797,)
        The digits, 0 to 9.

    Examples
    --------
    >>> from manykernels.datasets import load_digit_views
    >>> views, y = load_digit_views(noise=1)
    >>> {name: view.shape[1] for name, view in views.items()}
    {'pixels': 64, 'rows': 16, 'columns': 16, 'gradients': 32, 'fourier': 13,
     'coarse': 16, 'noise1': 16}
    >>> y[:5]
    array([0, 1, 2, 3, 4])
    """
    noise = operator.index(noise)
    if noise < 0:
        raise ValueError(f"noise must be a number of views, 0 or more; got {noise}.")
    digits = load_digits()
    images = digits.images
    views = {
        "pixels": images.reshape(len(images), -1),
        "rows": _profiles(images),
        "columns": _profiles(images.transpose(0, 2, 1)),
        "gradients": _gradients(images),
        "fourier": _fourier(images),
        "coarse": _block_means(images),
    }
    rng = check_random_state(random_state)
    for i in range(noise):
        views[f"noise{i + 1}"] = rng.standard_normal((len(images), _NOISE_COLUMNS))
    return Views(views), digits.target


def _profiles(images: np.ndarray) -> np.ndarray:
    """Sum of each row, then the distance from its first to its last inked pixel."""
    ink = images > 0
    n_columns = images.shape[2]
    first = ink.argmax(axis=2)
    last = n_columns - 1 - ink[:, :, ::-1].argmax(axis=2)
    width = np.where(ink.any(axis=2), last - first + 1, 0)
    return np.hstack([images.sum(axis=2), width])


def _gradients(images: np.ndarray) -> np.ndarray:
    """Gradient length per direction and quarter of the image.

    The bins are centred on the multiples of 45 degrees. Their edges have irrational slopes,
    so no gradient of an integer image lies on one.
    """
    n, height, width = images.shape
    down, right = np.gradient(images, axis=(1, 2))
    turn = np.arctan2(down, right) / (2 * np.pi)
    direction = np.floor(turn * _BINS + 0.5).astype(int) % _BINS
    row = np.arange(height) * _CELLS // height
    column = np.arange(width) * _CELLS // width
    cell = row[:, None] * _CELLS + column
    image = np.arange(n)[:, None, None]
    histogram = np.zeros((n, _CELLS**2, _BINS))
    np.add.at(histogram, (image, cell, direction), np.hypot(down, right))
    return histogram.reshape(n, -1)


def _fourier(images: np.ndarray) -> np.ndarray:
    """Moduli of the low Fourier coefficients, one of each conjugate pair."""
    top = _HIGHEST_FREQUENCY
    frequencies = [(u, v) for v in range(top + 1) for u in range(-top, top + 1) if v > 0 or u >= 0]
    coefficients = np.fft.fft2(images)
    return np.abs(np.stack([coefficients[:, u, v] for u, v in frequencies], axis=1))


def _block_means(images: np.ndarray) -> np.ndarray:
    """Means over blocks of 2 × 2 pixels."""
    n, height, width = images.shape
    blocks = images.reshape(n, height // 2, 2, width // 2, 2)
    return blocks.mean(axis=(2, 4)).reshape(n, -1)


# -- Simulated data of the papers, drawn as the benchmarks draw them ------------------------------


#: Means and variances (of independent columns) of the components of GAUSS4, as printed.
GAUSS4_MEANS = np.array([[-3.0, 1.0], [1.0, 1.0], [-1.0, -2.2], [3.0, -2.2]])
GAUSS4_VARIANCES = np.array([[0.8, 2.0], [0.8, 2.0], [0.8, 4.0], [0.8, 4.0]])
# Scale of the covariances of Yan et al. (2012) at which one Gaussian kernel alone errs 0.43, as
# in the paper, which does not print them; `benchmarks.simulation --calibrate` solves for it.
YAN_SCALE = 2.4


def generator(random_state: Any) -> np.random.Generator:
    """A generator for whatever stands for one; a generator is used as it is."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def counted(what: str, number: int, least: int) -> int:
    """`number` as an integer, or an error that names the parameter."""
    number = operator.index(number)
    if number < least:
        raise ValueError(f"{what} must be at least {least}; got {number}.")
    return number


def make_gauss4(
    n_samples: int = 400, *, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Draw GAUSS4 of Gönen and Alpaydın (2013): four Gaussians, two of each class.

    A sample belongs to each component with probability ¼. Columns are independent:

    ========= ============ ============ =====
    component mean         variances    class
    ========= ============ ============ =====
    1         (−3, 1)      (0.8, 2)     1
    2         (1, 1)       (0.8, 2)     1
    3         (−1, −2.2)   (0.8, 4)     0
    4         (3, −2.2)    (0.8, 4)     0
    ========= ============ ============ =====

    No line separates the classes, but three lines do, each in its region. The best rule is right
    for 89.7 % of the samples (`python -m benchmarks.localized --sets gauss4`).

    Parameters
    ----------
    n_samples : int, default=400
    random_state : int, numpy Generator, RandomState instance or None, default=None
        Draws the samples. A Generator is used as it is, so that calls one after the other give
        further samples.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        0 or 1.

    References
    ----------
    M. Gönen, E. Alpaydın. Localized algorithms for multiple kernel learning. Pattern Recognition
    46, 2013, section 3.1.1.

    Examples
    --------
    >>> from manykernels.datasets import make_gauss4
    >>> X, y = make_gauss4(200, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((200, 2), [0, 1])
    """
    n_samples = counted("n_samples", n_samples, 1)
    rng = generator(random_state)
    component = rng.integers(len(GAUSS4_MEANS), size=n_samples)
    normal = rng.standard_normal((n_samples, 2))
    X = GAUSS4_MEANS[component] + np.sqrt(GAUSS4_VARIANCES[component]) * normal
    return X, (component < 2).astype(int)


@dataclass(frozen=True)
class GaussianPair:
    """Two Gaussians in the plane, one per class: ``mean + factor @ standard normal``."""

    means: np.ndarray
    factors: np.ndarray

    @classmethod
    def draw(cls, rng: np.random.Generator, scale: float) -> GaussianPair:
        means = rng.uniform(1, 2, (2, 2))
        factors = np.array([_covariance_factor(rng, scale) for _ in range(2)])
        return cls(means, factors)

    def points(self, rng: np.random.Generator, class_size: int) -> np.ndarray:
        """As many points of each class, those of the first class first, (2 · class_size, 2)."""
        normal = rng.standard_normal((2, class_size, 2))
        points = self.means[:, None] + normal @ self.factors.transpose(0, 2, 1)
        return points.reshape(-1, 2)


def _covariance_factor(rng: np.random.Generator, scale: float) -> np.ndarray:
    """Axes in a random direction, variances uniform in scale · [0.5, 1.5]."""
    angle = rng.uniform(0, np.pi)
    axes = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return axes * np.sqrt(scale * rng.uniform(0.5, 1.5, 2))


def make_yan_simulation(
    n_views: int = 10,
    n_per_class: int = 50,
    *,
    scale: float = YAN_SCALE,
    random_state: Any = None,
) -> tuple[Views, np.ndarray]:
    """Draw the simulation of Yan et al. (2012): views that each know a little of the classes.

    A view has two columns and is drawn on its own. Class c = 0, 1 is a Gaussian in it:

    - its mean is uniform in [1, 2]²;
    - its covariance has axes in a uniformly random direction, with variances uniform in
      ``scale`` · [0.5, 1.5] along them.

    Every view is about as weak as the others, so that methods that use all of them do well. The
    paper does not print its covariances. Here they are such that a Gaussian kernel of one view
    errs as in the paper, 0.43; see ``benchmarks/simulation.py``.

    Parameters
    ----------
    n_views : int, default=10
    n_per_class : int, default=50
        Samples of each class. To have training and test samples, draw as many as both need and
        split them: two calls draw different Gaussians.
    scale : float, default=2.4
        The larger it is, the more the classes overlap.
    random_state : int, numpy Generator, RandomState instance or None, default=None
        Draws the Gaussians, then the samples.

    Returns
    -------
    views : Views
        Arrays of shape (2 · n_per_class, 2), named "view1", "view2", ...
    y : ndarray of shape (2 · n_per_class,)
        0 or 1, those of class 0 first.

    References
    ----------
    F. Yan, J. Kittler, K. Mikolajczyk, A. Tahir. Non-sparse multiple kernel Fisher discriminant
    analysis. Journal of Machine Learning Research 13, 2012, section 3.1.

    Examples
    --------
    >>> from manykernels.datasets import make_yan_simulation
    >>> views, y = make_yan_simulation(3, random_state=0)
    >>> views
    Views(100 rows: 'view1' (2 columns), 'view2' (2 columns), 'view3' (2 columns))
    """
    n_views = counted("n_views", n_views, 1)
    n_per_class = counted("n_per_class", n_per_class, 1)
    if not 0 < scale < np.inf:
        raise ValueError(f"scale must be a positive number; got {scale!r}.")
    rng = generator(random_state)
    pairs = [GaussianPair.draw(rng, scale) for _ in range(n_views)]
    views = {f"view{j}": pair.points(rng, n_per_class) for j, pair in enumerate(pairs, 1)}
    return Views(views), np.repeat([0, 1], n_per_class)


# -- Views of which it is known which ones matter -------------------------------------------------


def make_views(
    n_samples: int = 200,
    *,
    n_classes: int | None = 2,
    n_relevant: int = 3,
    n_copies: int = 0,
    n_noise: int = 3,
    n_features: int = 10,
    signal: float = 1.5,
    spread: float = 1.0,
    missing: float = 0.0,
    frames: bool = False,
    random_state: Any = None,
) -> tuple[Any, Any, list[str]]:
    """Make views of which some tell about the target, and it is known which.

    The target y is drawn first: classes 0, ..., `n_classes` − 1, each equally often (up to one),
    in random order; or, for a regression, standard normal. A sample x of a view with
    d = `n_features` columns is then

    - relevant views: ``x = signal · a(y) + ε``. The vectors a(0), a(1), ... of a view are drawn
      from N(0, I/d); for a regression, a(y) = y u with a random vector u of length one;
    - copies: ``x = Q z``, a relevant view z in turn, rotated by a random orthogonal matrix Q.
      Inner products and distances are those of z, up to rounding: a copy tells nothing new;
    - noise views: ``x = ε``.

    The noise ε is standard normal and independent everywhere. So the squared distance between the
    means of two classes is 2 · signal² on average, and relevant views are independent given y:
    each adds to what the others tell. Every view may then be multiplied by a factor of its own,
    and samples may lack views.

    Parameters
    ----------
    n_samples : int, default=200
    n_classes : int or None, default=2
        Number of classes; None for a regression.
    n_relevant, n_copies, n_noise : int, default=3, 0 and 3
        Numbers of views: "signal1", ..., "copy1", ..., "noise1", ...
    n_features : int, default=10
        Columns of every view.
    signal : float, default=1.5
        How much relevant views tell.
    spread : float, default=1.0
        Every view is multiplied by a factor drawn log-uniformly from [1/spread, spread].
    missing : float, default=0.0
        Share of the samples that lack each view, drawn at random, in [0, 1). A sample that would
        lack all views gets one of them back.
    frames : bool, default=False
        Data frames instead of arrays, with names of samples as index: the rows of each are in an
        order of its own, samples that lack a view are not in its frame, and y is a Series. Needs
        pandas.
    random_state : int, numpy Generator, RandomState instance or None, default=None
        Draws everything. With the same integer, the target and the views stay as they are when
        more views of a kind, gaps or frames are asked for.

    Returns
    -------
    views : Views, or dict of str to DataFrame
        A dict with `frames`, for estimators or ``Views(views, join="outer")`` to match. Without,
        rows that lack a view are NaN, which :class:`~manykernels.Views` takes for lacking.
    y : ndarray of shape (n_samples,), or Series
    relevant : list of str
        Names of the relevant views, without the copies.

    Examples
    --------
    >>> from manykernels import MKFDA
    >>> from manykernels.datasets import make_views
    >>> from manykernels.kernels import Linear
    >>> views, y, relevant = make_views(n_relevant=2, n_noise=4, random_state=0)
    >>> relevant
    ['signal1', 'signal2']
    >>> model = MKFDA(Linear(), p=1).fit(views, y)
    >>> largest = model.weights_.argsort()[-2:]
    >>> sorted(views.names[j] for j in largest)
    ['signal1', 'signal2']
    """
    n_samples = counted("n_samples", n_samples, 2)
    n_features = counted("n_features", n_features, 1)
    n_relevant, n_copies, n_noise = (
        counted(what, number, 0)
        for what, number in (
            ("n_relevant", n_relevant),
            ("n_copies", n_copies),
            ("n_noise", n_noise),
        )
    )
    if n_relevant + n_noise == 0 or (n_copies > 0 and n_relevant == 0):
        raise ValueError(
            "There must be a view, and copies need a relevant view to be copies of; got "
            f"n_relevant={n_relevant}, n_copies={n_copies}, n_noise={n_noise}."
        )
    if n_classes is not None and not 2 <= counted("n_classes", n_classes, 2) <= n_samples:
        raise ValueError(f"n_classes is {n_classes}, more than n_samples, {n_samples}.")
    if not 0 <= missing < 1:
        raise ValueError(f"missing must be a share in [0, 1); got {missing!r}.")
    if not 1 <= spread < np.inf:
        raise ValueError(f"spread must be a number of at least 1; got {spread!r}.")
    # A stream of numbers for each purpose, so that one does not move the others.
    target, relevant_views, copies, noise, factors, gaps, order = generator(random_state).spawn(7)
    y = _target(n_samples, n_classes, target)
    shape = n_samples, n_features
    tables = {}
    for i in range(n_relevant):
        told = _told(y, n_classes, n_features, relevant_views)
        tables[f"signal{i + 1}"] = signal * told + relevant_views.standard_normal(shape)
    for i in range(n_copies):
        rotation = np.linalg.qr(copies.standard_normal((n_features, n_features)))[0]
        tables[f"copy{i + 1}"] = tables[f"signal{i % n_relevant + 1}"] @ rotation
    for i in range(n_noise):
        tables[f"noise{i + 1}"] = noise.standard_normal(shape)
    for kind, stream in zip(("signal", "copy", "noise"), factors.spawn(3), strict=True):
        for name in tables:
            if name.startswith(kind):
                tables[name] *= spread ** stream.uniform(-1, 1)
    lacking = _lacking(n_samples, len(tables), missing, gaps)
    relevant = [f"signal{i + 1}" for i in range(n_relevant)]
    if frames:
        return *_frames(tables, y, lacking, order), relevant
    for table, rows in zip(tables.values(), lacking.T, strict=True):
        table[rows] = np.nan
    return Views(tables), y, relevant


def _target(n_samples: int, n_classes: int | None, rng: np.random.Generator) -> np.ndarray:
    if n_classes is None:
        return rng.standard_normal(n_samples)
    return rng.permutation(np.arange(n_samples) % n_classes)


def _told(
    y: np.ndarray, n_classes: int | None, n_features: int, rng: np.random.Generator
) -> np.ndarray:
    """a(y) for every sample, (n_samples, n_features)."""
    if n_classes is None:
        direction = rng.standard_normal(n_features)
        return y[:, None] * direction / np.linalg.norm(direction)
    means: np.ndarray = rng.standard_normal((n_classes, n_features)) / np.sqrt(n_features)
    return means[y]


def _lacking(n_samples: int, n_views: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """Which samples lack which views, (n_samples, n_views)."""
    # Numbers drawn for all samples, the least of which are gaps: larger shares add gaps.
    drawn = rng.random((n_samples, n_views)).argsort(axis=0).argsort(axis=0)
    kept = rng.integers(n_views, size=n_samples)
    lacking = drawn < round(share * n_samples)
    alone = np.flatnonzero(lacking.all(axis=1))
    lacking[alone, kept[alone]] = False
    return lacking


def _frames(
    tables: dict[str, np.ndarray], y: np.ndarray, lacking: np.ndarray, rng: np.random.Generator
) -> tuple[dict[str, pd.DataFrame], pd.Series]:
    import pandas as pd

    samples = np.array([f"sample{i + 1}" for i in range(len(y))])
    found = {}
    for (name, table), gaps in zip(tables.items(), lacking.T, strict=True):
        frame = pd.DataFrame(table, index=samples).add_prefix(f"{name}_")
        rows = rng.permutation(len(y))
        found[name] = frame.iloc[rows[~gaps[rows]]]
    return found, pd.Series(y, index=samples, name="y")

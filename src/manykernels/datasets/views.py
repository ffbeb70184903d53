"""Views of handwritten digits, and simulated data with classes, values or survival times."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq
from sklearn.datasets import load_digits
from sklearn.utils import check_random_state

from ..kernels import Views
from ..survival import survival_array

if TYPE_CHECKING:
    import pandas as pd


# Shapes of the views; see load_digit_views.
_NOISE_COLUMNS = 16  # the size of three of the other views
_CELLS = 2  # gradient cells along each side of the image
_BINS = 8  # gradient directions
_HIGHEST_FREQUENCY = 2


def load_digit_views(
    *, noise: int = 0, random_state: int | np.random.RandomState | None = 0
) -> tuple[Views, np.ndarray]:
    """Load the handwritten digits bundled with scikit-learn as six views.

    Each view describes the same 1797 images of 8 × 8 pixels; none is scaled. Views of noise can be
    added, to test whether a method learns to ignore them.

    Parameters
    ----------
    noise : int, default=0
        Number of noise views, each of 16 independent standard normal columns.
    random_state : int, RandomState instance or None, default=0
        Seed of the noise views. It gives the same first views for any number of noise views.

    Returns
    -------
    views : Views
        Arrays of 1797 rows, in this order:

        - ``"pixels"`` (64): grey values, 0 to 16, row by row;
        - ``"rows"`` (16): sums of the rows, then widths of the ink in the rows;
        - ``"columns"`` (16): the same for the columns;
        - ``"gradients"`` (32): total length of the gradients in each of eight directions, for
          each quarter of the image;
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
        raise ValueError(f"noise must be the number of noise views, 0 or more; got {noise}.")
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
    """Return the sum of each row, and the distance from its first to its last inked pixel."""
    ink = images > 0
    n_columns = images.shape[2]
    first = ink.argmax(axis=2)
    last = n_columns - 1 - ink[:, :, ::-1].argmax(axis=2)
    width = np.where(ink.any(axis=2), last - first + 1, 0)
    return np.hstack([images.sum(axis=2), width])


def _gradients(images: np.ndarray) -> np.ndarray:
    """Return total gradient lengths per direction and quarter of the image.

    The bins are centred at multiples of 45 degrees. Their edges have irrational slopes, so no
    gradient of an integer image lies on an edge.
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
    """Return the moduli of the low Fourier coefficients, one of each conjugate pair."""
    top = _HIGHEST_FREQUENCY
    frequencies = [(u, v) for v in range(top + 1) for u in range(-top, top + 1) if v > 0 or u >= 0]
    coefficients = np.fft.fft2(images)
    return np.abs(np.stack([coefficients[:, u, v] for u, v in frequencies], axis=1))


def _block_means(images: np.ndarray) -> np.ndarray:
    """Return means over blocks of 2 × 2 pixels."""
    n, height, width = images.shape
    blocks = images.reshape(n, height // 2, 2, width // 2, 2)
    return blocks.mean(axis=(2, 4)).reshape(n, -1)


# -- Simulated data of the papers -----------------------------------------------------------------


#: Means and variances (of independent columns) of the components of GAUSS4, as printed.
GAUSS4_MEANS = np.array([[-3.0, 1.0], [1.0, 1.0], [-1.0, -2.2], [3.0, -2.2]])
GAUSS4_VARIANCES = np.array([[0.8, 2.0], [0.8, 2.0], [0.8, 4.0], [0.8, 4.0]])
# Scale of the covariances of Yan et al. (2012), which the paper does not print. At this scale a
# single Gaussian kernel has the error of the paper, 0.43; `benchmarks.simulation --calibrate`
# computes it.
YAN_SCALE = 2.4


def generator(
    random_state: int | np.random.Generator | np.random.RandomState | None,
) -> np.random.Generator:
    """Return a generator for a seed, a RandomState or a Generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def counted(name: str, number: int, least: int) -> int:
    """Return `number` as an integer, or raise if it is less than `least`."""
    number = operator.index(number)
    if number < least:
        raise ValueError(f"{name} must be at least {least}; got {number}.")
    return number


def make_gauss4(
    n_samples: int = 400, *, random_state: int | np.random.RandomState | None = None
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

    A single line does not separate the classes, but three lines do, each in a region. The Bayes
    rule has an accuracy of 89.7 % (`python -m benchmarks.gonen2013 --sets gauss4`).

    Parameters
    ----------
    n_samples : int, default=400
        Number of samples.
    random_state : int, numpy Generator, RandomState instance or None, default=None
        Seed of the samples. Successive calls with the same Generator draw further samples.

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
        """Draw points of the first class, then of the second, (2 · class_size, 2)."""
        normal = rng.standard_normal((2, class_size, 2))
        points = self.means[:, None] + normal @ self.factors.transpose(0, 2, 1)
        return points.reshape(-1, 2)


def _covariance_factor(rng: np.random.Generator, scale: float) -> np.ndarray:
    """Draw axes in a random direction, with variances uniform in scale · [0.5, 1.5]."""
    angle = rng.uniform(0, np.pi)
    axes = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return axes * np.sqrt(scale * rng.uniform(0.5, 1.5, 2))


def make_yan_simulation(
    n_views: int = 10,
    n_per_class: int = 50,
    *,
    scale: float = YAN_SCALE,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Views, np.ndarray]:
    """Draw the simulation of Yan et al. (2012): views that are all weakly informative.

    A view has two columns and is drawn independently. Class c = 0, 1 is a Gaussian in it:

    - its mean is uniform in [1, 2]²;
    - its covariance has axes in a uniformly random direction, with variances uniform in
      ``scale`` · [0.5, 1.5] along them.

    All views are about equally weak, so that methods that use all of them do well. The paper does
    not print its covariances. Here a Gaussian kernel of a single view has the error of the paper,
    0.43; see ``benchmarks/simulation.py``.

    Parameters
    ----------
    n_views : int, default=10
        Number of views.
    n_per_class : int, default=50
        Number of samples of each class. For training and test samples, draw all samples in one
        call and split them: two calls draw different Gaussians.
    scale : float, default=2.4
        Scale of the variances. The larger, the more the classes overlap.
    random_state : int, numpy Generator, RandomState instance or None, default=None
        Seed of the Gaussians and of the samples.

    Returns
    -------
    views : Views
        Arrays of shape (2 · n_per_class, 2), named "view1", "view2", ...
    y : ndarray of shape (2 · n_per_class,)
        0 or 1, class 0 first.

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


# -- Relevant and irrelevant views ----------------------------------------------------------------


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
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Any, Any, list[str]]:
    """Generate views of which a known subset is informative about the target.

    The target y is drawn first: classes 0, ..., `n_classes` − 1, equally often (up to one sample),
    in random order; or, for a regression, standard normal. A sample x of a view with
    d = `n_features` columns is then

    - relevant views: ``x = signal · a(y) + ε``. The vectors a(0), a(1), ... of a view are drawn
      from N(0, I/d); for a regression, a(y) = y u with a random unit vector u;
    - copies: ``x = Q z``, a relevant view z rotated by a random orthogonal matrix Q. Inner
      products and distances are those of z, up to rounding: a copy has no new information;
    - noise views: ``x = ε``.

    The noise ε is standard normal and independent. Hence the squared distance between the means of
    two classes is 2 · signal² on average, and relevant views are independent given y: each has
    additional information. Optionally, views are scaled by random factors, and samples lack
    views.

    Parameters
    ----------
    n_samples : int, default=200
        Number of samples.
    n_classes : int or None, default=2
        Number of classes; None for a regression.
    n_relevant, n_copies, n_noise : int, default=3, 0 and 3
        Numbers of views named "signal1", ..., "copy1", ..., "noise1", ...
    n_features : int, default=10
        Number of columns of each view.
    signal : float, default=1.5
        Strength of the signal in relevant views.
    spread : float, default=1.0
        Each view is multiplied by a factor drawn log-uniformly from [1/spread, spread].
    missing : float, default=0.0
        Share of the samples that lack each view, in [0, 1). They are drawn at random, but every
        sample keeps at least one view.
    frames : bool, default=False
        Whether to return data frames, with names of samples as index. The rows of each frame are
        in a different order, without samples that lack the view, and y is a Series. Needs pandas.
    random_state : int, numpy Generator, RandomState instance or None, default=None
        Seed. With the same integer, target and views do not change if more views of a kind,
        missing views or frames are requested.

    Returns
    -------
    views : Views, or dict of str to DataFrame
        With `frames`, a dict that estimators, or ``Views(views, join="outer")``, match by index.
        Else rows that lack a view are NaN, which :class:`~manykernels.Views` treats as missing.
    y : ndarray of shape (n_samples,), or Series
        Target.
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
        counted(name, number, 0)
        for name, number in (
            ("n_relevant", n_relevant),
            ("n_copies", n_copies),
            ("n_noise", n_noise),
        )
    )
    if n_relevant + n_noise == 0 or (n_copies > 0 and n_relevant == 0):
        raise ValueError(
            "There must be at least one view, and at least one relevant view if there are copies; "
            f"got n_relevant={n_relevant}, n_copies={n_copies}, n_noise={n_noise}."
        )
    if n_classes is not None and not 2 <= counted("n_classes", n_classes, 2) <= n_samples:
        raise ValueError(f"n_classes is {n_classes}, more than n_samples, {n_samples}.")
    if not 0 <= missing < 1:
        raise ValueError(f"missing must be a share in [0, 1); got {missing!r}.")
    if not 1 <= spread < np.inf:
        raise ValueError(f"spread must be a number of at least 1; got {spread!r}.")
    # Separate random streams, so that a parameter does not change the draws of the others.
    target, relevant_views, copies, noise, factors, gaps, order = generator(random_state).spawn(7)
    y = _target(n_samples, n_classes, target)
    shape = n_samples, n_features
    tables = {}
    for i in range(n_relevant):
        means = _means(y, n_classes, n_features, relevant_views)
        tables[f"signal{i + 1}"] = signal * means + relevant_views.standard_normal(shape)
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


def _means(
    y: np.ndarray, n_classes: int | None, n_features: int, rng: np.random.Generator
) -> np.ndarray:
    """Return a(y) of each sample, (n_samples, n_features)."""
    if n_classes is None:
        direction = rng.standard_normal(n_features)
        return y[:, None] * direction / np.linalg.norm(direction)
    means: np.ndarray = rng.standard_normal((n_classes, n_features)) / np.sqrt(n_features)
    return means[y]


def _lacking(n_samples: int, n_views: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """Draw the mask of missing views, (n_samples, n_views)."""
    # The samples with the smallest ranks lack a view, so that a larger share only adds samples.
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
    frames = {}
    for (name, table), gaps in zip(tables.items(), lacking.T, strict=True):
        frame = pd.DataFrame(table, index=samples).add_prefix(f"{name}_")
        rows = rng.permutation(len(y))
        frames[name] = frame.iloc[rows[~gaps[rows]]]
    return frames, pd.Series(y, index=samples, name="y")


# -- Views with survival times --------------------------------------------------------------------


# Mean survival of a sample of average risk, in months.
_MEAN_SURVIVAL = 24.0


def make_survival_views(
    n_samples: int = 200,
    *,
    n_features: int = 20,
    signal: float = 1.5,
    censoring: float = 0.5,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Views, np.ndarray, np.ndarray]:
    """Generate views of patients, of which two are informative about their survival times.

    The risk of a patient is ``f = signal · (g + m) / √2``. Here g is a random linear function of
    the genes and m one of the mutations, each with mean 0 and variance 1. The survival time is
    exponential with the mean ``24 exp(−f)`` months, as in a Cox model with the cumulative
    baseline hazard t/24. Observation ends after an independent exponential time, if there was no
    event before.

    Parameters
    ----------
    n_samples : int, default=200
        Number of patients.
    n_features : int, default=20
        Number of columns of each view.
    signal : float, default=1.5
        Standard deviation of the risks.
    censoring : float, default=0.5
        Expected share of patients without an event, in [0, 1).
    random_state : int, numpy Generator, RandomState instance or None, default=None
        Seed. With the same integer, views, risks and survival times do not depend on `censoring`.

    Returns
    -------
    views : Views
        Arrays with `n_features` columns, in this order:

        - ``"genes"``: standard normal, informative;
        - ``"mutations"``: 0 and 1, informative;
        - ``"proteins"``: standard normal, not informative.
    y : ndarray of shape (n_samples,)
        Structured array with the fields ``"event"`` and ``"time"``, in months.
    risk : ndarray of shape (n_samples,)
        The true risks f, which no model can surpass in the mean.

    Examples
    --------
    >>> from manykernels.datasets import make_survival_views
    >>> from manykernels.metrics import concordance_index
    >>> views, y, risk = make_survival_views(random_state=0)
    >>> views
    Views(200 rows: 'genes' (20 columns), 'mutations' (20 columns), 'proteins' (20 columns))
    >>> y["event"][:3], y["time"][:3].round(1)
    (array([ True,  True, False]), array([16.4,  0.3,  1.9]))
    >>> round(concordance_index(y["event"], y["time"], risk), 2)
    0.81
    """
    n_samples = counted("n_samples", n_samples, 2)
    n_features = counted("n_features", n_features, 1)
    if not 0 <= signal < np.inf:
        raise ValueError(f"signal must be a number of at least 0; got {signal!r}.")
    if not 0 <= censoring < 1:
        raise ValueError(f"censoring must be a share in [0, 1); got {censoring!r}.")
    # Separate random streams, so that a parameter does not change the draws of the others.
    genes, mutations, proteins, times, ends = generator(random_state).spawn(5)
    shape = n_samples, n_features
    frequency = mutations.uniform(0.1, 0.5, n_features)
    tables = {
        "genes": genes.standard_normal(shape),
        "mutations": (mutations.random(shape) < frequency).astype(float),
        "proteins": proteins.standard_normal(shape),
    }
    effects = genes.standard_normal(n_features)
    of_genes = tables["genes"] @ effects / np.linalg.norm(effects)
    effects = mutations.standard_normal(n_features) / np.sqrt(frequency * (1.0 - frequency))
    spread = np.sqrt(frequency * (1.0 - frequency)) * effects
    of_mutations = (tables["mutations"] - frequency) @ effects / np.linalg.norm(spread)
    risk = signal * (of_genes + of_mutations) / np.sqrt(2.0)
    time = _MEAN_SURVIVAL * times.standard_exponential(n_samples) * np.exp(-risk)
    end = np.full(n_samples, np.inf)
    if censoring > 0.0:
        rate = _censoring_rate(risk, censoring) / _MEAN_SURVIVAL
        end = ends.standard_exponential(n_samples) / rate
    return Views(tables), survival_array((time <= end, np.minimum(time, end))), risk


def _censoring_rate(risk: np.ndarray, share: float) -> float:
    """Return the rate of censoring, relative to the baseline, with this expected share."""

    def excess(log_rate: float) -> float:
        # An exponential time of rate c comes before one of rate exp(f) with c / (c + exp(f)).
        return float(np.mean(1.0 / (1.0 + np.exp(risk - log_rate)))) - share

    middle = np.log(share / (1.0 - share))
    return float(np.exp(brentq(excess, middle + risk.min() - 1.0, middle + risk.max() + 1.0)))

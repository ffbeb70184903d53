"""Views of which it is known which ones matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import Views
from .simulations import counted, generator

if TYPE_CHECKING:
    import pandas as pd


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

"""Spatial pyramids: where in a picture the words are (Yan et al. 2012, section 3.2).

The base kernels of the paper are spatial pyramid match kernels of bags of words: words are counted
in the cells of grids over the picture, and histograms of the same cell are compared. Lazebnik et
al. (2006) fix the weights of the grids, a quarter, a quarter and a half for 1, 4 and 16 cells; the
paper has a kernel for each of three grids, which it does not name, and learns their weights. Here:
pictures and descriptors of the part on soft assignment, 200 words, nearest word, and kernels of
histogram intersection, ``Σ_w min(x_w, z_w)``. A pyramid with given weights is the intersection of
weighted histograms, a single kernel. MK-FDA, p and λ by five folds (MKFDACV). 20 photographs of
each kind to train on, 20 to test, five splits.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import MiniBatchKMeans
from sklearn.model_selection import StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks import _yan2012_words as words
from benchmarks._tables import markdown, verdict
from manykernels import MKFDACV
from manykernels.kernels import Intersection

N_WORDS = 200
#: Cells along each side of a grid, and the weight that Lazebnik et al. give it.
GRIDS = {1: 0.25, 2: 0.25, 4: 0.5}
NORMS = (1.0, 2.0, np.inf)
WHOLE, GIVEN, LEARNT = "no places", "given weights of grids", "learnt weights of grids"

#: Test accuracies in per cent, one per split.
Pyramids = dict[str, list[float]]


def cell_counts(nearest: np.ndarray, n_words: int, side: int) -> np.ndarray:
    """Return the share of each word in each of side × side cells, all together of sum one.

    `nearest` is the word at each place, of shape (rows, columns).
    """
    row, column = (np.arange(length) * side // length for length in nearest.shape)
    cell = row[:, None] * side + column[None, :]
    counts = np.bincount((cell * n_words + nearest).ravel(), minlength=side**2 * n_words)
    return counts / nearest.size


def histograms(pictures: list[np.ndarray], means: np.ndarray) -> dict[int, np.ndarray]:
    """Return the histograms of all pictures for each grid; pictures are (rows, columns, d)."""
    nearest = [
        cdist(words.flat(picture), means, "sqeuclidean").argmin(axis=1).reshape(picture.shape[:2])
        for picture in pictures
    ]
    return {
        side: np.array([cell_counts(of_picture, len(means), side) for of_picture in nearest])
        for side in GRIDS
    }


def run(quick: bool) -> Pyramids:
    """Read photographs, count words in cells and compare pyramids."""
    used, y, others = words.photographs(*_data.flower17(), quick)
    elsewhere = np.vstack([words.flat(picture) for picture in others])
    return compare(used, y, elsewhere, N_WORDS // 10 if quick else N_WORDS, 2 if quick else 5)


def compare(
    pictures: list[np.ndarray], y: np.ndarray, elsewhere: np.ndarray, n_words: int, n_splits: int
) -> Pyramids:
    """Return the accuracies on random halves; words come from the descriptors `elsewhere`."""
    rng = np.random.default_rng(0)
    some = elsewhere[rng.permutation(len(elsewhere))[: words.MOST_FOR_WORDS]]
    halves = StratifiedShuffleSplit(n_splits, train_size=0.5, test_size=0.5, random_state=0)
    accuracy: Pyramids = {name: [] for name in (WHOLE, GIVEN, LEARNT)}
    with threadpool_limits(1):
        means = MiniBatchKMeans(n_words, n_init=1, random_state=0).fit(some).cluster_centers_
        counts = histograms(pictures, means)
        tables: dict[str, dict[str, np.ndarray]] = {
            WHOLE: {"1 × 1": counts[1]},
            GIVEN: {"all": np.hstack([share * counts[side] for side, share in GRIDS.items()])},
            LEARNT: {f"{side} × {side}": counts[side] for side in GRIDS},
        }
        for train, test in halves.split(y, y):
            for name, views in tables.items():
                norms = NORMS if len(views) > 1 else NORMS[:1]
                model = MKFDACV(Intersection(), ps=norms, regs=words.REGS)
                model.fit({view: values[train] for view, values in views.items()}, y[train])
                new = {view: values[test] for view, values in views.items()}
                accuracy[name].append(100.0 * model.score(new, y[test]))
    return accuracy


def difference(found: Pyramids, name: str, other: str) -> tuple[float, float]:
    """Return the mean difference of two methods in points, and its standard error."""
    values = np.array(found[name]) - np.array(found[other])
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(values.mean()), float(error)


def table(found: Pyramids) -> str:
    """Return the accuracies, and their differences from words without places."""
    rows = []
    for name, values in found.items():
        mean, error = difference(found, name, WHOLE)
        gain = "" if name == WHOLE else f"{mean:+.1f} ± {error:.1f}"
        rows.append([name, f"{np.mean(values):.1f}", gain])
    return markdown(["", "accuracy, %", "less without places"], rows)


def verdicts(found: Pyramids) -> list[str]:
    """Return what the figures say of places, and of learnt weights of grids."""
    lines = []
    for name, other in ((GIVEN, WHOLE), (LEARNT, WHOLE), (LEARNT, GIVEN)):
        mean, error = difference(found, name, other)
        lines.append(
            f"Spatial pyramids, {name} against {other}: {mean:+.1f} ± {error:.1f} points (not "
            f"worse by more than a standard error: {verdict(bool(mean > -error))})"
        )
    return lines

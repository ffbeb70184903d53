"""Visual words, assigned hard or softly: how Yan et al. (2012) make their kernels (section 3.3).

The paper describes a picture by local descriptors, gathers these to words by k-means, and counts
words with the soft assignment of van Gemert et al. (2008): a descriptor r is shared among all
words w, by ``exp(−‖r − w‖²/2σ²)`` divided by the sum over words, where plain counts give it to the
nearest word. It compares no counts with each other and prints no σ. Here: ten kinds of FLOWER17,
40 photographs of each, made 160 pixels long; gradients in 4 × 4 cells of 4 × 4 pixels and eight
directions (SIFT at one scale, every eight pixels); words from 100 other photographs; one χ² kernel
and MK-FDA with this single kernel, λ by five folds (MKFDACV). 20 photographs of each kind to train
on, 20 to test, five splits. σ is given as a share of the root mean square distance to the nearest
word, and "chosen" is the one that does best in the folds of the training photographs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import MiniBatchKMeans
from sklearn.model_selection import StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks._tables import markdown, verdict
from manykernels import MKFDACV
from manykernels.kernels import ChiSquare

LENGTH = 160
CELL = 4
WINDOW = 4  # cells of a descriptor, each way
STRIDE = 2  # cells
N_DIRECTIONS = 8
CLIP = 0.2
WIDTHS = (0.1, 0.2, 0.4)
VOCABULARIES = (50, 200, 800)
MOST_FOR_WORDS = 20_000
SPLITS = 5
REGS = (1e-3, 1e-2, 0.1, 1.0)
HARD, CHOSEN = "hard", "soft, chosen"


def read_grey(path: Path, length: int = LENGTH) -> np.ndarray:
    """The grey values of a photograph, its longer side made `length` pixels."""
    from PIL import Image  # comes with matplotlib

    with Image.open(path) as picture:
        picture.draft("L", (2 * length, 2 * length))
        grey = picture.convert("L")
        grey.thumbnail((length, length))
        return np.asarray(grey, dtype=float)


def descriptors(grey: np.ndarray) -> np.ndarray:
    """Histograms of gradient directions in the cells of all windows, of length one.

    The shape is (rows of windows, columns of windows, directions and cells).
    """
    down, right = np.gradient(grey)
    size = np.hypot(down, right)
    turn = (np.arctan2(down, right) / (2 * np.pi) % 1.0) * N_DIRECTIONS
    below = np.floor(turn).astype(int) % N_DIRECTIONS
    share = turn - np.floor(turn)
    n_rows, n_columns = (extent // CELL for extent in grey.shape)
    inside = np.s_[: n_rows * CELL, : n_columns * CELL]
    cells = np.zeros((n_rows, n_columns, N_DIRECTIONS))
    for direction in range(N_DIRECTIONS):
        # A gradient between two directions counts for both.
        part = np.where(below == direction, (1 - share) * size, 0.0)
        part += np.where((below + 1) % N_DIRECTIONS == direction, share * size, 0.0)
        blocks = part[inside].reshape(n_rows, CELL, n_columns, CELL)
        cells[:, :, direction] = blocks.sum(axis=(1, 3))
    windows = np.lib.stride_tricks.sliding_window_view(cells, (WINDOW, WINDOW), axis=(0, 1))
    windows = windows[::STRIDE, ::STRIDE]
    each = windows.reshape(*windows.shape[:2], N_DIRECTIONS * WINDOW**2)
    return _unit(np.minimum(_unit(each), CLIP)).astype(np.float32)


def flat(picture: np.ndarray) -> np.ndarray:
    """Return the descriptors of a picture without their places, one in each row."""
    return picture.reshape(-1, picture.shape[-1])


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def hard_counts(squares: np.ndarray) -> np.ndarray:
    """Share of the descriptors nearest to each word; (n_descriptors, n_words) to (n_words,)."""
    nearest = squares.argmin(axis=1)
    return np.bincount(nearest, minlength=squares.shape[1]) / len(squares)


def soft_counts(squares: np.ndarray, width: float) -> np.ndarray:
    """The same with each descriptor shared among words, by a Gaussian of this width."""
    # Less the smallest, so that the nearest word has exp(0).
    near = np.exp(-(squares - squares.min(axis=1, keepdims=True)) / (2 * width**2))
    return (near / near.sum(axis=1, keepdims=True)).mean(axis=0)


def histograms(pictures: list[np.ndarray], words: np.ndarray) -> dict[str, np.ndarray]:
    """Counts of words of all pictures, hard and soft."""
    squares = [cdist(picture, words, "sqeuclidean") for picture in pictures]
    radius = np.sqrt(np.mean([one.min(axis=1).mean() for one in squares]))
    tables = {HARD: np.array([hard_counts(one) for one in squares])}
    for share in WIDTHS:
        soft = [soft_counts(one, share * radius) for one in squares]
        tables[f"soft, σ = {share:g}"] = np.array(soft)
    return tables


#: Test accuracies in per cent, one per split, by number of words and assignment.
Words = dict[str, dict[str, list[float]]]


def gain(by: dict[str, list[float]]) -> tuple[float, float]:
    """Of the chosen σ over hard counts in points, mean and standard error."""
    differences = np.array(by[CHOSEN]) - np.array(by[HARD])
    n = len(differences)
    error = differences.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    return float(differences.mean()), float(error)


def photographs(
    paths: list[Path], y: np.ndarray, quick: bool
) -> tuple[list[np.ndarray], np.ndarray, list[np.ndarray]]:
    """Return descriptors of some photographs, their kinds, and descriptors of others for words."""
    kinds, n_each, n_other = np.arange(1, 11), 40, 10
    if quick:
        kinds, n_each, n_other = kinds[:3], 10, 3
    rows = [np.flatnonzero(y == kind) for kind in kinds]
    used = np.concatenate([one[:n_each] for one in rows])
    others = np.concatenate([one[n_each : n_each + n_other] for one in rows])
    described = [[descriptors(read_grey(paths[i])) for i in some] for some in (used, others)]
    return described[0], y[used], described[1]


def run(quick: bool) -> Words:
    """Read photographs, learn words and compare assignments."""
    used, y, others = photographs(*_data.flower17(), quick)
    return compare(
        [flat(picture) for picture in used],
        y,
        np.vstack([flat(picture) for picture in others]),
        VOCABULARIES[:1] if quick else VOCABULARIES,
        2 if quick else SPLITS,
    )


def compare(
    pictures: list[np.ndarray],
    y: np.ndarray,
    elsewhere: np.ndarray,
    vocabularies: tuple[int, ...],
    n_splits: int,
) -> Words:
    """All assignments on random halves; words come from the descriptors `elsewhere`."""
    rng = np.random.default_rng(0)
    some = elsewhere[rng.permutation(len(elsewhere))[:MOST_FOR_WORDS]]
    halves = StratifiedShuffleSplit(n_splits, train_size=0.5, test_size=0.5, random_state=0)
    accuracy: Words = {}
    with threadpool_limits(1):
        for n_words in vocabularies:
            means = MiniBatchKMeans(n_words, n_init=1, random_state=0).fit(some)
            tables = histograms(pictures, means.cluster_centers_)
            by = accuracy[str(n_words)] = {name: [] for name in [*tables, CHOSEN]}
            for train, test in halves.split(y, y):
                soft = []
                for name, table in tables.items():
                    model = MKFDACV(ChiSquare(gamma="median"), ps=(1.0,), regs=REGS)
                    model.fit(table[train], y[train])
                    by[name].append(100.0 * model.score(table[test], y[test]))
                    if name != HARD:
                        soft.append((model.cv_results_["mean_test_score"].max(), by[name][-1]))
                by[CHOSEN].append(max(soft, key=lambda pair: pair[0])[1])
    return accuracy


def table(found: Words) -> str:
    names = list(next(iter(found.values())))
    rows = []
    for n_words, by in found.items():
        mean, error = gain(by)
        cells = [f"{np.mean(by[name]):.1f}" for name in names]
        rows.append([n_words, *cells, f"{mean:+.1f} ± {error:.1f}"])
    return markdown(["words", *names, "chosen − hard"], rows)


def verdicts(found: Words) -> list[str]:
    lines = []
    for n_words, by in found.items():
        mean, error = gain(by)
        lines.append(
            f"Soft words, {n_words} of them: {mean:+.1f} ± {error:.1f} points against hard "
            f"counts; the paper takes soft ones (not worse by more than a standard error: "
            f"{verdict(bool(mean > -error))})"
        )
    return lines

"""Ten views of photographs of flowers, from the files to histograms, kept on disk.

Photographs are made small (shorter side 200 pixels). Where the flower is, nobody says: a map of
weights stands in for a segmentation. Colours that are frequent in the middle and rare elsewhere
are taken for those of the flower, see :func:`flower_map`. Most views are histograms of words, the
nearest of k-means centres to a colour, a patch or a descriptor, in which pixels count by that map.

The centres are learnt from pixels of photographs drawn at random from all of them, those to be
predicted included. No label is looked at, here or anywhere in this file.
"""

# scikit-image is imported where it is needed: pages are made without it.

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from PIL import Image
from scipy import ndimage
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics.pairwise import additive_chi2_kernel

SHORTER_SIDE = 200
#: Words of each vocabulary.
N_WORDS = {"colours": 300, "patches": 400, "shapes": 600, "coloured shapes": 600}
#: Photographs that vocabularies are learnt from, and how much of each.
VOCABULARY_PHOTOGRAPHS = 340
SAMPLES_PER_PHOTOGRAPH = 150
#: Photographs in each of the files that features are kept in.
PART = 80

_CELLS = (4, 8)  # pixels; a descriptor has 4 × 4 cells
_STEP = 6  # pixels between descriptors
_N_ORIENTATIONS = 8
_COLOUR_STEP = 2  # colours of every second pixel of every second row
_PATCH_STEP = 3
_LBP = ((8, 1), (16, 2), (24, 3))  # neighbours, radius
_HSV_BINS = (12, 4, 3)
_HOG_SIDE = 64


@dataclass(frozen=True)
class Described:
    """Descriptors of one photograph, and where they are: rows and columns of pixels."""

    values: np.ndarray
    rows: np.ndarray
    columns: np.ndarray


@dataclass(frozen=True)
class Photograph:
    """A small photograph, red, green and blue from 0 to 1."""

    rgb: np.ndarray

    @classmethod
    def read(cls, path: Path) -> Self:
        with Image.open(path) as image:
            image.draft("RGB", (SHORTER_SIDE, SHORTER_SIDE))  # JPEG decodes to about this size
            scale = SHORTER_SIDE / min(image.size)
            size = [max(SHORTER_SIDE, round(scale * side)) for side in image.size]
            small = image.convert("RGB").resize((size[0], size[1]), Image.Resampling.BOX)
        return cls(np.asarray(small, dtype=np.float32) / 255)

    @cached_property
    def grey(self) -> np.ndarray:
        return np.asarray(self.rgb @ np.array([0.299, 0.587, 0.114], dtype=np.float32))

    @cached_property
    def opponent(self) -> np.ndarray:
        """Intensity, red against green, and yellow against blue."""
        red, green, blue = np.moveaxis(self.rgb, 2, 0)
        return np.stack([self.grey, red - green, (red + green) / 2 - blue])

    @cached_property
    def colours(self) -> Described:
        from skimage.color import rgb2lab

        lab = rgb2lab(self.rgb[::_COLOUR_STEP, ::_COLOUR_STEP])
        return _on_grid(lab, _COLOUR_STEP, 0)

    @cached_property
    def patches(self) -> Described:
        """Grey patches of 5 × 5 pixels, of mean zero and of unit contrast."""
        windows = np.lib.stride_tricks.sliding_window_view(self.grey, (5, 5))
        windows = windows[::_PATCH_STEP, ::_PATCH_STEP]
        values = windows.reshape(*windows.shape[:2], 25)
        values = values - values.mean(axis=2, keepdims=True)
        contrast = np.sqrt((values**2).sum(axis=2, keepdims=True))
        # Flat patches are noise: they stay near zero.
        return _on_grid(values / (contrast + 0.05), _PATCH_STEP, 2)

    @cached_property
    def shapes(self) -> Described:
        return self._gradients(self.opponent[:1])

    @cached_property
    def coloured_shapes(self) -> Described:
        return self._gradients(self.opponent)

    def _gradients(self, channels: np.ndarray) -> Described:
        parts = [gradient_histograms(channels, cell) for cell in _CELLS]
        return Described(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.columns for part in parts]),
        )

    def described(self, kind: str) -> Described:
        """Descriptors by the name of their vocabulary."""
        found: Described = getattr(self, kind.replace(" ", "_"))
        return found


def gradient_histograms(channels: np.ndarray, cell: int) -> Described:
    """Histograms of gradient directions in 4 × 4 cells around points of a grid, as in SIFT.

    Every channel is brought to unit length by itself, with values above 0.2 cut.
    """
    reach = 2 * cell
    rows = np.arange(reach, channels.shape[1] - reach + 1, _STEP)
    columns = np.arange(reach, channels.shape[2] - reach + 1, _STEP)
    middles = np.array([-1.5, -0.5, 0.5, 1.5]) * cell
    at_rows = (rows[:, None] + middles).astype(int)
    at_columns = (columns[:, None] + middles).astype(int)
    descriptors = []
    for channel in channels:
        smooth = ndimage.gaussian_filter(channel, cell / 4)
        down, right = np.gradient(smooth)
        size = np.hypot(down, right)
        turn = np.arctan2(down, right) * (_N_ORIENTATIONS / (2 * np.pi)) % _N_ORIENTATIONS
        cells = []
        for orientation in range(_N_ORIENTATIONS):
            apart = np.abs(turn - orientation)
            near = np.maximum(0, 1 - np.minimum(apart, _N_ORIENTATIONS - apart))
            pooled = ndimage.uniform_filter(near * size, cell)
            cells.append(pooled[at_rows[:, None, :, None], at_columns[None, :, None, :]])
        values = np.stack(cells, axis=-1).reshape(len(rows), len(columns), -1)
        values = np.minimum(values / (_length(values) + 1e-3), 0.2)
        descriptors.append(values / (_length(values) + 1e-3))
    grid = np.meshgrid(rows, columns, indexing="ij")
    values = np.concatenate(descriptors, axis=2).reshape(grid[0].size, -1).astype(np.float32)
    return Described(values, grid[0].ravel(), grid[1].ravel())


def _length(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt((values**2).sum(axis=-1, keepdims=True)))


def _on_grid(values: np.ndarray, step: int, first: int) -> Described:
    rows, columns = np.indices(values.shape[:2]) * step + first
    flat = values.reshape(rows.size, -1).astype(np.float32)
    return Described(flat, rows.ravel(), columns.ravel())


# -- where the flower is --------------------------------------------------------------------


def flower_map(words: np.ndarray, n_words: int, n_rounds: int = 4) -> np.ndarray:
    """How much each pixel is taken to belong to the flower, from 0 to 1.

    `words` are colours. A map begins as a bump in the middle. In every round a colour counts by
    its share inside the map against its share outside, and the map becomes the smoothed counts
    of its pixels' colours, times the bump.
    """
    height, width = words.shape
    y, x = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)
    bump = np.exp(-(x**2 + y**2) / (2 * 0.6**2))
    inside = np.exp(-(x**2 + y**2) / (2 * 0.35**2))
    flat = words.ravel()
    for _ in range(n_rounds):
        weights = inside.ravel()
        of_flower = np.bincount(flat, weights, n_words) / weights.sum()
        of_rest = np.bincount(flat, 1 - weights, n_words) / (1 - weights).sum()
        share = (of_flower + 1e-4) / (of_flower + of_rest + 2e-4)
        seen = ndimage.gaussian_filter(share[words], 2.0)
        inside = np.clip(2 * seen * bump, 1e-3, 1 - 1e-3)
    return np.asarray(inside)


# -- vocabularies ---------------------------------------------------------------------------

Vocabularies = dict[str, np.ndarray]


def learn_vocabularies(paths: list[Path], seed: int = 0) -> Vocabularies:
    """k-means centres of descriptors, from photographs drawn at random."""
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(len(paths))[:VOCABULARY_PHOTOGRAPHS]
    samples: dict[str, list[np.ndarray]] = {kind: [] for kind in N_WORDS}
    for number in drawn:
        photograph = Photograph.read(paths[number])
        for kind in N_WORDS:
            values = photograph.described(kind).values
            samples[kind].append(values[rng.permutation(len(values))[:SAMPLES_PER_PHOTOGRAPH]])
    return {kind: _centres(np.concatenate(samples[kind]), kind, seed) for kind in N_WORDS}


def _centres(values: np.ndarray, kind: str, seed: int) -> np.ndarray:
    n_words = min(N_WORDS[kind], len(values))
    means = MiniBatchKMeans(n_words, batch_size=4096, n_init=1, random_state=seed)
    return np.asarray(means.fit(values).cluster_centers_, dtype=np.float32)


def nearest_words(values: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Number of the nearest centre of each row."""
    nearness = values @ centres.T
    nearness -= (centres**2).sum(axis=1) / 2
    return np.asarray(nearness.argmax(axis=1))


# -- views ----------------------------------------------------------------------------------


def views_of(photograph: Photograph, vocabularies: Vocabularies) -> dict[str, np.ndarray]:
    """Histograms of one photograph, each of sum one."""
    described = {kind: photograph.described(kind) for kind in vocabularies}
    words = {
        kind: nearest_words(described[kind].values, centres)
        for kind, centres in vocabularies.items()
    }
    small = photograph.grey[::_COLOUR_STEP, ::_COLOUR_STEP].shape
    flower = flower_map(words["colours"].reshape(small), len(vocabularies["colours"]))
    edge = ndimage.gaussian_gradient_magnitude(flower, 2.0)

    def bag(kind: str, weights: np.ndarray | None = None, grid: int = 1) -> np.ndarray:
        at = described[kind]
        given = None if weights is None else weights[at.rows // 2, at.columns // 2]
        height, width = photograph.grey.shape
        cells = grid * (at.rows * grid // height) + at.columns * grid // width
        n_words = len(vocabularies[kind])
        return _shares(np.bincount(n_words * cells + words[kind], given, n_words * grid**2))

    return {
        "colour": bag("colours", flower),
        "HSV": _hsv_histograms(photograph),
        "shape": bag("shapes"),
        "shape inside": bag("shapes", flower),
        "shape at the edge": bag("shapes", edge),
        "shape by place": bag("shapes", grid=3),
        "coloured shape": bag("coloured shapes", flower),
        "texture": bag("patches", flower),
        "LBP": _lbp_histograms(photograph, flower),
        "HOG": _hog(photograph, flower),
    }


def _shares(counts: np.ndarray) -> np.ndarray:
    return np.asarray(counts / max(counts.sum(), 1e-12))


def _hsv_histograms(photograph: Photograph) -> np.ndarray:
    """Of the whole photograph and of its quarters; the whole counts half."""
    from skimage.color import rgb2hsv

    hsv = rgb2hsv(photograph.rgb)
    bins = [np.minimum((hsv[..., i] * n).astype(int), n - 1) for i, n in enumerate(_HSV_BINS)]
    codes = np.ravel_multi_index(bins, _HSV_BINS)
    n_codes = int(np.prod(_HSV_BINS))
    y, x = np.indices(codes.shape)
    quarters = 2 * (2 * y // codes.shape[0]) + 2 * x // codes.shape[1]
    whole = np.bincount(codes.ravel(), minlength=n_codes)
    parts = np.bincount((n_codes * quarters + codes).ravel(), minlength=4 * n_codes)
    return _shares(np.concatenate([whole, parts]))


def _lbp_histograms(photograph: Photograph, flower: np.ndarray) -> np.ndarray:
    """Local binary patterns of grey values, invariant to rotation, at three radii."""
    from skimage.feature import local_binary_pattern

    grey = np.round(255 * photograph.grey).astype(np.uint8)
    weights = np.repeat(np.repeat(flower, 2, axis=0), 2, axis=1)
    weights = weights[: grey.shape[0], : grey.shape[1]].ravel()
    parts = []
    for neighbours, radius in _LBP:
        codes = local_binary_pattern(grey, neighbours, radius, "uniform").astype(int)
        parts.append(np.bincount(codes.ravel(), weights, neighbours + 2))
    return _shares(np.concatenate(parts))


def _hog(photograph: Photograph, flower: np.ndarray) -> np.ndarray:
    """Gradients in the cells of a square around the flower, brought to one size."""
    from skimage.feature import hog

    height, width = photograph.grey.shape
    y, x = np.indices(flower.shape) * 2
    weights = flower**2 / (flower**2).sum()
    middle = (weights * y).sum(), (weights * x).sum()
    spread = np.sqrt((weights * ((y - middle[0]) ** 2 + (x - middle[1]) ** 2)).sum())
    half = np.clip(1.4 * spread, 30, min(height, width) / 2)
    top = int(np.clip(middle[0] - half, 0, height - 2 * half))
    left = int(np.clip(middle[1] - half, 0, width - 2 * half))
    side = int(2 * half)
    square = photograph.grey[top : top + side, left : left + side]
    image = Image.fromarray(np.round(255 * square).astype(np.uint8))
    image = image.resize((_HOG_SIDE, _HOG_SIDE), Image.Resampling.BOX)
    found = hog(np.asarray(image), 9, (8, 8), (2, 2), feature_vector=True)
    return _shares(found)


# -- keeping --------------------------------------------------------------------------------


def distances(paths: list[Path], folder: Path) -> dict[str, np.ndarray]:
    """χ² distances between all photographs in every view, computed or read from `folder`.

    What is there already is not computed again, so that a run that was interrupted goes on where
    it stopped. Other photographs, or another version of this file, have a folder of their own.
    """
    kept = folder / _fingerprint(paths)
    kept.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    names = [f"features-{start:05d}" for start in range(0, len(paths), PART)]

    def vocabularies() -> Vocabularies:
        return _kept(kept / "vocabularies.npz", lambda: learn_vocabularies(paths))

    def features() -> Iterator[dict[str, np.ndarray]]:
        for i, name in enumerate(names):
            part = paths[PART * i : PART * (i + 1)]
            yield _kept(kept / f"{name}.npz", lambda part=part: _views(part, vocabularies()))
            seconds = time.perf_counter() - begin
            done = min(PART * (i + 1), len(paths))
            print(
                f"features: {done} of {len(paths)} photographs, {seconds:.0f} s", file=sys.stderr
            )

    def all_distances() -> dict[str, np.ndarray]:
        parts = list(features())
        views = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return {name: -additive_chi2_kernel(view) for name, view in views.items()}

    return _kept(kept / "distances.npz", all_distances)


def _views(paths: list[Path], vocabularies: Vocabularies) -> dict[str, np.ndarray]:
    each = [views_of(Photograph.read(path), vocabularies) for path in paths]
    return {name: np.array([views[name] for views in each]) for name in each[0]}


def _kept(path: Path, compute: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Arrays of a file, which is written first if it is not there."""
    if not path.exists():
        unfinished = path.with_suffix(f".{os.getpid()}.npz")
        np.savez(unfinished, **compute())
        unfinished.replace(path)
    with np.load(path) as content:
        return dict(content)


def _fingerprint(paths: list[Path]) -> str:
    """Of this file, and of the names and sizes of the photographs."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in paths:
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
    return digest.hexdigest()[:12]

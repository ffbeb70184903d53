"""
Photographs: from files to a tuned model
========================================

A folder of pictures, a subfolder for each kind. Every picture is described several times over: by
its colours, by the directions of its edges, by its texture. Each description is a histogram and
becomes a χ² kernel; which of them matter is learnt. Nothing but NumPy and Matplotlib is needed to
read and describe pictures here. With scikit-image, or a neural network, descriptions get better,
and the rest stays the same.
"""

# %%
# A folder of pictures
# --------------------
# So that this runs anywhere, the pictures are drawn: flowers of two colours, with few broad petals
# or many thin ones, in front of leaves, in any light. Neither colour nor shape alone tells the
# four kinds apart.

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import hsv_to_rgb, rgb_to_hsv
from sklearn.model_selection import train_test_split

from manykernels import MKFDACV, Views, view_importance
from manykernels.kernels import ChiSquare

SIDE = 64
rng = np.random.default_rng(0)
# Hue, number of petals, and how deep the gaps between them are.
kinds = {
    "buttercup": (0.15, 5, 0.25),
    "coltsfoot": (0.15, 17, 0.45),
    "violet": (0.77, 5, 0.25),
    "aster": (0.77, 17, 0.45),
}


def smooth_noise(cells):
    """Random values from 0 to 1 that change slowly."""
    coarse, at = rng.random((cells, cells)), np.linspace(0, cells - 1, SIDE)
    rows = np.array([np.interp(at, np.arange(cells), row) for row in coarse])
    return np.array([np.interp(at, np.arange(cells), column) for column in rows.T]).T


def draw(hue, n_petals, depth):
    """A picture, red, green and blue from 0 to 1."""
    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j] - rng.normal(0, 0.15, (2, 1, 1))
    angle = np.arctan2(y, x) * n_petals + rng.uniform(0, 2 * np.pi)
    edge = rng.uniform(0.5, 0.8) * (1 - depth + depth * np.cos(angle))
    flower = np.hypot(x, y) < edge
    hues = np.where(flower, hue + rng.normal(0, 0.06), rng.uniform(0.2, 0.45))
    light = np.where(flower, 0.9, 0.3 + 0.5 * smooth_noise(12)) * (0.5 + 0.5 * smooth_noise(3))
    picture = hsv_to_rgb(np.dstack([hues % 1, np.full_like(hues, rng.uniform(0.5, 0.9)), light]))
    return np.clip(picture + rng.normal(0, 0.1, picture.shape), 0, 1)


folder = TemporaryDirectory()
for kind, looks in kinds.items():
    (Path(folder.name) / kind).mkdir()
    for number in range(50):
        plt.imsave(Path(folder.name) / kind / f"{number:03d}.png", draw(*looks))

# %%
# Four descriptions of each picture
# ---------------------------------
# From here on it could be any folder. Histograms have sum one, so that large and small pictures
# compare. The last one looks at the border alone, where there is hardly ever a flower.

paths = sorted(Path(folder.name).glob("*/*.png"))
y = np.array([path.parent.name for path in paths])
pictures = [plt.imread(path)[..., :3] for path in paths]
folder.cleanup()


def shares(codes, n_codes, weights=None):
    counts = np.bincount(np.ravel(codes), None if weights is None else np.ravel(weights), n_codes)
    return counts / counts.sum()


def colours(picture):
    """Twelve hues, each pale, medium or strong."""
    hue, saturation, _ = np.moveaxis(rgb_to_hsv(picture), -1, 0)
    codes = 3 * np.minimum(12 * hue, 11).astype(int) + np.minimum(3 * saturation, 2).astype(int)
    return shares(codes, 36)


def directions(picture):
    """Directions of edges, eight in each of 4 × 4 cells, by their strength."""
    down, right = np.gradient(picture.mean(axis=2))
    turn = np.floor(8 * (np.arctan2(down, right) / (2 * np.pi) % 1)).astype(int) % 8
    rows, columns = np.indices(turn.shape) * 4 // np.array(turn.shape)[:, None, None]
    return shares(8 * (4 * rows + columns) + turn, 128, np.hypot(down, right))


def patterns(picture):
    """Local binary patterns: how many of eight neighbours are brighter, if they are in one arc."""
    grey = picture.mean(axis=2)
    steps = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]
    ring = np.array([np.roll(grey, step, axis=(0, 1)) > grey + 0.08 for step in steps])
    changes = (ring != np.roll(ring, 1, axis=0)).sum(axis=0)
    return shares(np.where(changes <= 2, ring.sum(axis=0), 9)[1:-1, 1:-1], 10)


def border(picture):
    return colours(np.concatenate([picture[:5], picture[-5:]]))


describe = {"colours": colours, "directions": directions, "patterns": patterns, "border": border}
views = Views({name: np.array([one(p) for p in pictures]) for name, one in describe.items()})
print(views)

# %%
# A tuned model
# -------------
# The width of each kernel comes from the median χ² distance of its view; p and λ are chosen by
# folds.

train, test, y_train, y_test = train_test_split(views, y, stratify=y, random_state=0)
model = MKFDACV(ChiSquare(gamma="median")).fit(train, y_train)
print(f"\np = {model.p_:g}, λ = {model.reg_:g}")
print(f"new photographs named correctly: {model.score(test, y_test):.1%}\n")

# %%
# Which views matter
# ------------------
# What a view is worth alone is one question, what is lost without it another. Colours are not to
# be replaced; edges and patterns tell much the same.

importance = view_importance(model, train, y_train, n_resamples=20)
print(importance)

fig = plt.figure(figsize=(11, 7), layout="constrained")
above, below = fig.subfigures(2, 1, height_ratios=[1.2, 1])
axes = above.subplots(len(kinds), 10)
for kind, row in zip(kinds, axes, strict=True):
    for ax, number in zip(row, np.flatnonzero(y == kind), strict=False):
        ax.imshow(pictures[number])
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(kind, rotation=0, ha="right", va="center")
importance.plot(below.subplots(1, 3))
path = Path("out", "photographs.png").resolve()
path.parent.mkdir(exist_ok=True)
fig.savefig(path, dpi=110)
print(f"\nPicture: {path}")

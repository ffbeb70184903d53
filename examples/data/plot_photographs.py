"""
Photographs: from files to a tuned model
========================================

The images are in a folder with one subfolder per class. Each image is described by histograms of
its colours, of the directions of its edges, and of its texture. Each histogram has a χ² kernel,
and the weights of the kernels are learnt. This example uses only NumPy and Matplotlib to read
images and to compute features. Features from scikit-image or a neural network are better and can
be used in the same way.
"""

# %%
# A folder of images
# ------------------
# To make the example self-contained, the images are simulated: flowers of two colours, with few
# broad or many thin petals, in front of leaves, in varying light. Neither colour nor shape alone
# separates the four classes.

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
    """Return an image of random values from 0 to 1 that vary slowly."""
    coarse, at = rng.random((cells, cells)), np.linspace(0, cells - 1, SIDE)
    rows = np.array([np.interp(at, np.arange(cells), row) for row in coarse])
    return np.array([np.interp(at, np.arange(cells), column) for column in rows.T]).T


def draw(hue, n_petals, depth):
    """Draw a flower; return the image as RGB values from 0 to 1."""
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
# Four views of each image
# ------------------------
# The following code works for any folder of images. Histograms sum to one, so that images of
# different sizes are comparable. The last view is the border of the image, which rarely shows a
# flower.

paths = sorted(Path(folder.name).glob("*/*.png"))
y = np.array([path.parent.name for path in paths])
pictures = [plt.imread(path)[..., :3] for path in paths]
folder.cleanup()


def shares(codes, n_codes, weights=None):
    counts = np.bincount(np.ravel(codes), None if weights is None else np.ravel(weights), n_codes)
    return counts / counts.sum()


def colours(picture):
    """Return a histogram of colours: twelve hues and three levels of saturation."""
    hue, saturation, _ = np.moveaxis(rgb_to_hsv(picture), -1, 0)
    codes = 3 * np.minimum(12 * hue, 11).astype(int) + np.minimum(3 * saturation, 2).astype(int)
    return shares(codes, 36)


def directions(picture):
    """Return histograms of eight edge directions in 4 × 4 cells, weighted by edge strength."""
    down, right = np.gradient(picture.mean(axis=2))
    turn = np.floor(8 * (np.arctan2(down, right) / (2 * np.pi) % 1)).astype(int) % 8
    rows, columns = np.indices(turn.shape) * 4 // np.array(turn.shape)[:, None, None]
    return shares(8 * (4 * rows + columns) + turn, 128, np.hypot(down, right))


def patterns(picture):
    """Return a histogram of local binary patterns.

    The code of a pixel is the number of brighter pixels among its eight neighbours if they are
    adjacent to each other, and 9 otherwise.
    """
    grey = picture.mean(axis=2)
    steps = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]
    ring = np.array([np.roll(grey, step, axis=(0, 1)) > grey + 0.08 for step in steps])
    changes = (ring != np.roll(ring, 1, axis=0)).sum(axis=0)
    return shares(np.where(changes <= 2, ring.sum(axis=0), 9)[1:-1, 1:-1], 10)


def border(picture):
    return colours(np.concatenate([picture[:5], picture[-5:]]))


features = {"colours": colours, "directions": directions, "patterns": patterns, "border": border}
views = Views({name: np.array([f(p) for p in pictures]) for name, f in features.items()})
print(views)

# %%
# A tuned model
# -------------
# The width of each kernel is the median χ² distance of its view; p and λ are chosen by
# cross-validation.

train, test, y_train, y_test = train_test_split(views, y, stratify=y, random_state=0)
model = MKFDACV(ChiSquare(gamma="median")).fit(train, y_train)
print(f"\np = {model.p_:g}, λ = {model.reg_:g}")
print(f"new photographs named correctly: {model.score(test, y_test):.1%}\n")

# %%
# Importance of views
# -------------------
# The score of a view alone and the loss without it are different measures. The colours cannot be
# replaced by other views; edges and patterns contain similar information.

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

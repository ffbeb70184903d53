"""Handwritten digits in several views, computed from the images bundled with scikit-learn."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import check_random_state

from ..kernels import Views

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

"""Random numbers of rows: each a function of a seed and the number of the row, nothing else.

So a sample of rows, or the fold of a row, depends neither on blocks nor on who reads them.

The key of row r is number r of the sequence of SplitMix64 (Steele, Lea & Flood 2014) that begins
at a state drawn from the seed: ``mix(state + (r + 1) γ)`` modulo 2⁶⁴. Adding an odd multiple of r
and mixing are both one-to-one, so that no two rows have the same key.
"""

from __future__ import annotations

import numpy as np

# Of SplitMix64: γ is 2⁶⁴ over the golden ratio, made odd; the others are factors of its mixing.
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
# Bits by which numbers are shifted before each factor, and after the last.
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
# What keys are for: those of different purposes are independent of each other.
_SAMPLE, _FOLD = 0, 1


def sample_keys(rows: np.ndarray, seed: int) -> np.ndarray:
    """A 64-bit key for every row, all of them different; those of a sample are the smallest."""
    return _keys(rows, seed, _SAMPLE)


def fold_of(rows: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """The fold of every row, 0 to ``n_folds − 1``, by its number among all rows.

    Folds are of the same size on average. They are independent of samples with the same seed.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.scale import fold_of
    >>> fold_of(np.arange(8), n_folds=3, seed=0)
    array([...])
    >>> fold_of(np.array([5]), 3, 0) == fold_of(np.arange(8), 3, 0)[5]
    array([ True])
    """
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2, got {n_folds}.")
    return (_keys(rows, seed, _FOLD) % np.uint64(n_folds)).astype(np.intp)


def _keys(rows: np.ndarray, seed: int, purpose: int) -> np.ndarray:
    # Arrays of unsigned integers are added and multiplied modulo 2⁶⁴, as it should be.
    keys = (np.asarray(rows).astype(np.uint64) + np.uint64(1)) * _GAMMA + _state(seed, purpose)
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        keys = (keys ^ (keys >> shift)) * factor
    mixed: np.ndarray = keys ^ (keys >> _SHIFTS[2])
    return mixed


def _state(seed: int, purpose: int) -> np.uint64:
    (state,) = np.random.SeedSequence([seed, purpose]).generate_state(1, np.uint64)
    return np.uint64(state)

"""Laws of samples, censuses and folds: nothing depends on how rows are divided into blocks."""

from __future__ import annotations

import functools
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manykernels.scale.blocks import row_blocks
from manykernels.scale.rows import Block
from manykernels.scale.sampling import Reservoir, fold_of, sample_keys

N_ROWS = 60


def blocks_at(cuts, X, y, weight=None):
    """Blocks that begin at these rows."""
    edges = [0, *sorted(cuts), len(X)]
    for number, (start, stop) in enumerate(pairwise(edges)):
        some = slice(start, stop)
        yield Block(X[some], y[some], None if weight is None else weight[some], start, number)


def labelled(seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b", "c", "rare"], N_ROWS, p=[0.5, 0.3, 0.17, 0.03])
    y[rng.integers(N_ROWS)] = "rare"
    return rng.normal(size=(N_ROWS, 2)), y, rng.integers(0, 3, N_ROWS).astype(float)


def by_hand(rows, y, size, seed, per_class):
    """Rows with the smallest keys of all, and of every class."""
    by_key = rows[np.argsort(sample_keys(rows, seed))]
    chosen = set(by_key[:size].tolist())
    for label in set(y[rows].tolist()):
        chosen |= set([row for row in by_key if y[row] == label][:per_class])
    return sorted(chosen)


@settings(max_examples=25)
@given(
    cuts=st.lists(st.integers(0, N_ROWS), max_size=8),
    order=st.randoms(use_true_random=False),
    size=st.integers(1, N_ROWS + 5),
    per_class=st.integers(0, 4),
    seed=st.integers(0, 2**40),
)
def test_any_division_of_the_rows_gives_the_same_sample(cuts, order, size, per_class, seed):
    X, y, weight = labelled(seed % 7)
    reservoir = Reservoir(size, seed, per_class)
    # Each block is a part of its own, or is added to the part before; parts come in any order.
    parts, state = [], None
    for block in blocks_at(cuts, X, y, weight):
        if state is not None and order.random() < 0.5:
            parts.append(state)
            state = None
        state = reservoir.accumulate(state, block)
    parts.append(state)
    order.shuffle(parts)
    merged = functools.reduce(reservoir.merge, parts)
    sample, census = reservoir.sample(merged), merged.census
    rows = np.flatnonzero(weight > 0)
    assert sample.rows.tolist() == by_hand(rows, y, size, seed, per_class)
    np.testing.assert_array_equal(sample.X, X[sample.rows])
    np.testing.assert_array_equal(sample.y, y[sample.rows])
    np.testing.assert_array_equal(sample.weight, weight[sample.rows])
    classes, counts = np.unique(y[rows], return_counts=True)
    np.testing.assert_array_equal(census.classes, classes)
    np.testing.assert_array_equal(census.counts, counts)
    assert (census.n_rows, census.n_counting) == (N_ROWS, len(rows))
    assert census.weights.tolist() == [weight[y == label].sum() for label in classes]
    assert census.total_weight == weight.sum()
    for label, count in zip(classes, counts, strict=True):
        assert np.sum(sample.y == label) >= min(count, per_class)


def test_a_long_pass_holds_little_more_than_the_sample():
    X = np.arange(15_000.0)[:, None]
    reservoir = Reservoir(50, seed=1)
    state = None
    for block in row_blocks(X, block_size=100):
        state = reservoir.accumulate(state, block)
        assert sum(len(rows) for rows, _ in state.pieces) <= 2 * 50 + 100
    sample = reservoir.sample(state)
    np.testing.assert_array_equal(sample.X[:, 0], sample.rows)
    assert len(sample) == 50


def test_nothing_but_the_sample_is_read_where_rows_can_be_taken():
    class Guarded(np.ndarray):
        def __getitem__(self, key):
            rows, *_ = key if isinstance(key, tuple) else (key,)
            assert isinstance(rows, np.ndarray)
            return np.asarray(self)[key]

    X = np.arange(20.0).reshape(10, 2).view(Guarded)
    sample, _ = Reservoir(4, 0).draw(row_blocks(X, np.arange(10.0)))
    np.testing.assert_array_equal(sample.X[:, 0], 2.0 * sample.rows)


def test_a_sample_of_all_rows():
    X, y, _ = labelled(0)
    sample, _ = Reservoir(1000, 0, per_class=5).draw(row_blocks(X, y))
    assert sample.rows.tolist() == list(range(N_ROWS))


def test_every_row_is_as_likely_as_any_other():
    """How often each row is in a sample, over seeds; 5 standard deviations of a binomial."""
    n_seeds, size = 2000, 6
    keys = np.array([sample_keys(np.arange(30), seed) for seed in range(n_seeds)])
    drawn = np.argsort(keys, axis=1)[:, :size]
    counts = np.bincount(drawn.ravel(), minlength=30)
    share = size / 30
    assert np.abs(counts - n_seeds * share).max() < 5 * np.sqrt(n_seeds * share * (1 - share))


def test_keys_are_uniform_and_different():
    n_rows = 50_000
    keys = sample_keys(np.arange(n_rows), 5)
    assert len(np.unique(keys)) == n_rows
    # Every bit is set as often as not, and neighbours have nothing in common.
    bits = (keys[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    limit = 5 * np.sqrt(n_rows / 4)
    assert np.abs(bits.sum(axis=0).astype(float) - n_rows / 2).max() < limit
    agreeing = (bits[1:] == bits[:-1]).sum(axis=0)
    assert np.abs(agreeing - (n_rows - 1) / 2).max() < limit


def test_the_sequence_is_that_of_splitmix64(monkeypatch):
    """Known answers of the authors' program, begun at state 0 and at 1234567."""

    known = {
        0: [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F],
        1234567: [6457827717110365317, 3203168211198807973, 9817491932198370423],
    }
    for state, numbers in known.items():
        monkeypatch.setattr(
            "manykernels.scale.sampling._state", lambda *_, of=state: np.uint64(of)
        )
        assert sample_keys(np.arange(3), 0).tolist() == numbers


@pytest.mark.parametrize("n_folds", [2, 5, 7])
def test_folds_are_balanced_and_independent_of_samples(n_folds):
    rows = np.arange(100_000)
    folds = fold_of(rows, n_folds, seed=3)
    share = 1 / n_folds
    limit = 5 * np.sqrt(len(rows) * share * (1 - share))
    assert np.abs(np.bincount(folds, minlength=n_folds) - len(rows) * share).max() < limit
    np.testing.assert_array_equal(fold_of(rows[500:700], n_folds, seed=3), folds[500:700])
    assert np.mean(fold_of(rows, n_folds, seed=4) == folds) == pytest.approx(share, abs=0.02)
    sample = rows[np.argsort(sample_keys(rows, 3))[:10_000]]
    limit = 5 * np.sqrt(10_000 * share * (1 - share))
    counts = np.bincount(folds[sample], minlength=n_folds)
    assert np.abs(counts - 10_000 * share).max() < limit


def test_folds_of_one():
    with pytest.raises(ValueError, match="n_folds must be at least 2, got 1"):
        fold_of(np.arange(3), 1, 0)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([0, 1], ["a", "b"], "Mix of label input types .number and string."),
        (["a", "b"], [True, False], "Mix of label input types .number and string."),
        ([0, 1], [0.5, 1.0], "Unknown label type: continuous. y has the value 0.5"),
        ([0, 1], [[0, 1], [1, 0]], "y should be a 1d array of class labels"),
        ([0, 1], ["a", 1], "Mix of label input types .number and string."),
    ],
)
def test_labels_of_several_kinds(first, second, message):
    parts = [(np.ones((2, 1)), np.array(y, dtype=_kind(y))) for y in (first, second)]
    reservoir = Reservoir(3, 0, per_class=1)
    (X, y), (X_then, y_then) = parts
    state = reservoir.accumulate(None, Block(X, y, None, 0, 0))
    with pytest.raises(ValueError, match=message):
        reservoir.accumulate(state, Block(X_then, y_then, None, 2, 1))


def _kind(y):
    return object if len({type(one) for one in y}) > 1 else None


def test_numbers_with_fractions_are_targets_without_classes():
    sample, census = Reservoir(3, 0).draw(row_blocks(np.ones((9, 1)), np.linspace(0, 1, 9)))
    assert census.classes is None
    assert len(sample.y) == 3


def test_weights_of_zero():
    with pytest.raises(ValueError, match="sample_weight is zero for all rows"):
        Reservoir(3, 0).draw(row_blocks(np.ones((9, 1)), None, np.zeros(9)))


def test_invalid_sizes():
    with pytest.raises(ValueError, match="size must be at least 1"):
        Reservoir(0, 0)

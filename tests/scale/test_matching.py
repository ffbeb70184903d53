"""Rows of dask are matched by their index, and are the same in every pass."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from manykernels import MKFDA, MKFDACV, MKSVC, MKRidge, Nystrom
from manykernels.kernels import RBF
from manykernels.scale.blocks import row_blocks
from tests.scale.containers import add

N = 40
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 4))
LABELS = [f"row{number:02d}" for number in range(N)]
FRAME = pd.DataFrame(X, LABELS, columns=list("abcd"))
P, Q = FRAME[["a", "b"]], FRAME[["c", "d"]]
Y = pd.Series(np.where(X[:, 0] > 0, "yes", "no"), LABELS, name="y")
WEIGHT = pd.Series(rng.random(N), LABELS)
SHUFFLED = rng.permutation(N)


def lazy(table, npartitions=4, **how):
    return dd.from_pandas(table, npartitions=npartitions, **how)


def within(table, npartitions=4):
    """The same rows of dask, those of every partition in another order."""
    return lazy(table, npartitions).map_partitions(lambda part: part[::-1])


def unsorted(table):
    return lazy(table.iloc[SHUFFLED], sort=False)


def joined(X, y=None, weight=None):
    """All rows in one frame, in the order of their first column."""
    found = []
    for block in row_blocks(X, y, weight, block_size=7):
        tables = [block.X] if isinstance(block.X, pd.DataFrame) else dict(block.X.items()).values()
        frame = pd.DataFrame(np.hstack([np.asarray(one) for one in tables]), columns=list("abcd"))
        found.append(frame.assign(y=block.y, weight=block.weight))
    return pd.concat(found).sort_values("a", ignore_index=True)


EXPECTED = FRAME.assign(y=Y, weight=WEIGHT).sort_values("a", ignore_index=True)
VIEWS = {"p": lazy(P), "q": lazy(Q)}


@pytest.mark.parametrize(
    ("X", "y", "weight"),
    [
        (lazy(FRAME), lazy(Y), lazy(WEIGHT)),
        (lazy(FRAME), Y, WEIGHT),
        (lazy(FRAME), within(Y), within(WEIGHT)),
        (within(FRAME), lazy(Y), lazy(WEIGHT)),
        (lazy(FRAME), lazy(Y, 3), lazy(WEIGHT, 7)),
        (lazy(FRAME), within(Y, 3), lazy(WEIGHT, 1)),
        (unsorted(FRAME), unsorted(Y), unsorted(WEIGHT)),
        (lazy(FRAME).clear_divisions(), lazy(Y).clear_divisions(), WEIGHT),
        (VIEWS, lazy(Y), lazy(WEIGHT)),
        ({"p": lazy(P), "q": within(Q)}, within(Y, 3), lazy(WEIGHT)),
        ({"p": lazy(P, 2), "q": lazy(Q, 5)}, lazy(Y), WEIGHT),
        ({"p": lazy(P), "q": Q}, Y, lazy(WEIGHT)),
        ({"p": unsorted(P), "q": unsorted(Q)}, unsorted(Y), unsorted(WEIGHT)),
        # Rows without an index are those at the same place.
        (lazy(FRAME), Y.to_numpy(), WEIGHT.to_list()),
        ({"p": lazy(P), "q": lazy(Q).to_dask_array()}, Y.to_list(), lazy(WEIGHT).to_dask_array()),
    ],
)
def test_rows_with_the_same_label_belong_together(X, y, weight):
    pd.testing.assert_frame_equal(joined(X, y, weight), EXPECTED, check_dtype=False)


OTHERS = [f"other{number:02d}" for number in range(N)]


@pytest.mark.parametrize(
    ("X", "y", "name"),
    [
        (lazy(FRAME), unsorted(Y), "y"),
        (lazy(FRAME), Y.iloc[SHUFFLED], "y"),
        (unsorted(FRAME), lazy(Y), "y"),
        (lazy(FRAME), lazy(Y.set_axis(OTHERS)), "y"),
        (lazy(FRAME), lazy(Y.set_axis(range(N))), "y"),
        (lazy(FRAME), lazy(Y.set_axis(LABELS[:20] * 2), sort=False), "y"),
        (VIEWS, unsorted(Y), "y"),
        ({"p": lazy(P), "q": unsorted(Q)}, None, "view 'q'"),
        ({"p": lazy(P), "q": Q.iloc[SHUFFLED]}, None, "view 'q'"),
        ({"p": unsorted(P), "q": Q}, None, "view 'q'"),
    ],
)
def test_rows_that_cannot_be_matched(X, y, name):
    message = rf"The chunk that begins at row \d+: the index of {name} differs from .*join"
    for read in (lambda: list(row_blocks(X, y)), lambda: row_blocks(X, y).reduce(add_rows, add)):
        with pytest.raises(ValueError, match=message):
            read()


def add_rows(n_rows, block):
    return (n_rows or 0) + len(block)


def test_numbers_that_count_rows_may_be_no_labels():
    counted = FRAME.reset_index(drop=True)
    y = lazy(Y.reset_index(drop=True))
    assert row_blocks(lazy(counted), y).reduce(add_rows, add) == N
    for X, own in (
        (within(counted), y),
        (lazy(counted), y.map_partitions(lambda part: part[::-1])),
    ):
        with pytest.raises(ValueError, match=r"numbers of X in another order.*to_numpy\(\)"):
            row_blocks(X, own).reduce(add_rows, add)


def test_series_are_not_computed_as_a_whole(monkeypatch):
    sizes = []
    compute = dask.compute

    def watched(*given, **how):
        found = compute(*given, **how)
        sizes.extend(len(one) for one in found if isinstance(one, pd.Series | pd.DataFrame))
        return found

    monkeypatch.setattr(dask, "compute", watched)
    assert row_blocks(lazy(FRAME), lazy(Y)).reduce(add_rows, add) == N
    assert sizes == []


# -- estimators ------------------------------------------------------------------------------


def fitted(X, y):
    return MKFDA(RBF(), approximation=Nystrom(20)).fit(X, y)


def test_labels_are_matched_by_estimators_too():
    expected = fitted(FRAME, Y)
    model = fitted(lazy(FRAME), within(Y, 3))
    np.testing.assert_allclose(
        model.decision_function(FRAME), expected.decision_function(FRAME), atol=1e-8
    )
    views = {"p": P, "q": Q}
    model = fitted({"p": lazy(P, 3), "q": within(Q)}, within(Y))
    expected = fitted(views, Y)
    np.testing.assert_allclose(
        model.decision_function(views), expected.decision_function(views), atol=1e-8
    )
    lazy_views = {"p": lazy(P, 3), "q": within(Q)}
    np.testing.assert_allclose(
        model.decision_function(lazy_views), expected.decision_function(views), atol=1e-8
    )
    assert model.score(lazy_views, within(Y)) == expected.score(views, Y)
    for X, y in ((lazy(FRAME), unsorted(Y)), ({"p": lazy(P), "q": unsorted(Q)}, Y)):
        with pytest.raises(ValueError, match="differs from the index of"):
            fitted(X, y)
    with pytest.raises(ValueError, match="differs from the index of"):
        expected.score(VIEWS, unsorted(Y))
    with pytest.raises(ValueError, match="differs from the index of"):
        expected.predict({"p": lazy(P), "q": unsorted(Q)}).compute()


# -- rows that change ------------------------------------------------------------------------


def changing(values, change, first=1):
    """An array of dask whose chunks are changed when they are computed again."""
    calls = {}

    def compute(block, block_info):
        chunk = block_info[0]["chunk-location"]
        calls[chunk] = calls.get(chunk, 0) + 1
        return change(block) if calls[chunk] > first else block

    made = da.from_array(values, chunks=(10, *values.shape[1:]))
    return made.map_blocks(compute, dtype=values.dtype, meta=values[:0])


NUMBERS = (Y == "yes").to_numpy().astype(int)
CHANGES = {
    "y flipped": ("y", lambda y: 1 - y),
    "y in another order": ("y", lambda y: y[::-1]),
    "weights": ("sample_weight", lambda weight: 2.0 * weight),
    "X": ("X", lambda X: X[::-1]),
    "one entry of X": ("X", lambda X: X + np.eye(10, 4)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("model", "first"),
    [
        (MKFDA(), 1),
        (MKRidge(), 1),
        (MKFDACV(ps=[1], regs=[1.0], cv=2), 1),
        (MKSVC(loss="squared_hinge"), 1),
        (MKSVC(loss="squared_hinge"), 2),
    ],
)
def test_rows_that_change_between_passes(model, first, change):
    name, change = CHANGES[change]
    model.set_params(kernels=RBF(), approximation=Nystrom(20))
    given = {"X": X, "y": NUMBERS, "sample_weight": WEIGHT.to_numpy()}
    with dask.config.set(scheduler="synchronous"):
        model.fit(**{key: changing(values, change, 99) for key, values in given.items()})
        given[name] = changing(given[name], change, first)
        with pytest.raises(ValueError, match=rf"^{name} changed between passes.*persist\(\)"):
            model.fit(da.asarray(given.pop("X")), **given)


@pytest.mark.parametrize("column", ["y", "text", "a"])
def test_columns_that_change_between_passes(column):
    """Texts, too: targets and columns of a frame."""
    frame = FRAME.assign(y=Y, text=np.tile(["u", "v"], N // 2))
    calls = []

    def compute(part):
        calls.append(None)
        return part.assign(**{column: part[column].to_numpy()[::-1]}) if len(calls) > 8 else part

    rows = lazy(frame).map_partitions(compute, meta=frame[:0])
    blocks = row_blocks(rows, "y")
    with dask.config.set(scheduler="synchronous"):
        assert blocks.reduce(add_rows, add) == N  # after a pass that counts
        with pytest.raises(ValueError, match=f"^{'y' if column == 'y' else 'X'} changed between"):
            blocks.reduce(add_rows, add)


def test_numbers_of_rows_that_change():
    calls = []

    def compute(part):
        calls.append(None)
        return part[: len(part) - len(calls) // 5]

    rows = lazy(FRAME).map_partitions(compute, meta=FRAME[:0])
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(ValueError, match=r"X changed between passes over the rows \(3\d rows, 40 "),
    ):
        row_blocks(rows).reduce(add_rows, add)


def test_a_class_that_comes_in_the_second_pass():
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(ValueError, match=r"^y changed between passes.*persist\(\)"),
    ):
        fitted(da.from_array(X, chunks=(10, 4)), changing(NUMBERS, lambda y: y + 1))


def test_rounding_errors_are_no_change():
    jitter = iter(range(1000))

    def compute(block):
        return block * np.float32(1.0 + 1e-7 * (next(jitter) % 3 - 1))

    rows = da.from_array(X.astype(np.float32), chunks=(10, 4)).map_blocks(compute, dtype="f4")
    with dask.config.set(scheduler="synchronous"):
        assert fitted(rows, NUMBERS).score(X, NUMBERS) > 0.8

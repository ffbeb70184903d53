"""A pass that was interrupted goes on where it was, and gives the same sums bit for bit."""

from __future__ import annotations

import errno
import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from manykernels.scale import Checkpoint, row_blocks
from manykernels.scale.checkpoint import first_rows

N_BLOCKS, SIZE = 12, 5


class Sums:
    """Sums of products, added in place."""

    def __init__(self, sums):
        self.sums = sums

    def to_arrays(self):
        return {"sums": self.sums}

    @classmethod
    def from_arrays(cls, arrays):
        return cls(arrays["sums"])


class Adding:
    """Adds blocks, and does something at one of them."""

    def __init__(self, at=None, action=None, first=False):
        self.at, self.action, self.first = at, action, first
        self.blocks = []

    def __call__(self, state, block):
        state = Sums(np.zeros((3, 3))) if state is None else state
        if block.number == self.at and self.first:
            self.action()
        X = np.asarray(block.X)
        state.sums += X.T @ X
        self.blocks.append(block.number)
        if block.number == self.at and not self.first:
            self.action()
        return state


def table(seed=0):
    return np.random.default_rng(seed).normal(size=(N_BLOCKS * SIZE - 2, 3))


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def fail():
    raise RuntimeError("it failed")


def reduced(X, accumulate, path, every=1e6, **job):
    checkpoint = Checkpoint(path, Sums, job, every=every)
    return row_blocks(X, block_size=SIZE).reduce(accumulate, None, checkpoint=checkpoint).sums


def straight():
    return row_blocks(table(), block_size=SIZE).reduce(Adding(), None).sums


class Counting(np.ndarray):
    """Counts how often rows are read."""

    read: list

    def __getitem__(self, key):
        rows, *_ = key if isinstance(key, tuple) else (key,)
        self.read.append(rows.start)
        return np.asarray(self)[key]


@pytest.mark.parametrize("at", [0, 4, N_BLOCKS - 2])
@pytest.mark.parametrize("first", [False, True])
def test_ctrl_c_waits_for_the_block_and_saves(at, first, tmp_path):
    path = tmp_path / "pass.npz"
    adding = Adding(at, interrupt, first)
    with pytest.raises(KeyboardInterrupt):
        reduced(table(), adding, path)
    assert adding.blocks == list(range(at + 1))
    assert path.exists()
    X = table().view(Counting)
    X.read = []
    again = Adding()
    np.testing.assert_array_equal(reduced(X, again, path), straight())
    assert again.blocks == list(range(at + 1, N_BLOCKS))
    # The first block is read to see whether the data are the same; others before `at` are not.
    assert [start for start in X.read if start] == list(range((at + 1) * SIZE, len(X), SIZE))
    assert not path.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_does_not_wait(tmp_path):
    path = tmp_path / "pass.npz"

    def twice():
        interrupt()
        interrupt()

    adding = Adding(3, twice, first=True)
    with pytest.raises(KeyboardInterrupt):
        reduced(table(), adding, path, every=0.0)
    assert adding.blocks == [0, 1, 2]
    # What was being added when it came is not in the checkpoint.
    np.testing.assert_array_equal(reduced(table(), Adding(), path), straight())


def test_an_error_while_reading_saves(tmp_path):
    def rows(broken):
        for start in range(0, N_BLOCKS * SIZE - 2, SIZE):
            if broken and start == 4 * SIZE:
                raise OSError("the network is gone")
            yield table()[start : start + SIZE]

    path = tmp_path / "pass.npz"
    with pytest.raises(OSError, match="the network is gone"):
        reduced(lambda: rows(True), Adding(), path)
    again = Adding()
    np.testing.assert_array_equal(reduced(lambda: rows(False), again, path), straight())
    assert again.blocks == list(range(4, N_BLOCKS))


def test_an_iterator_goes_on_from_its_beginning(tmp_path):
    path = tmp_path / "pass.npz"
    with pytest.raises(KeyboardInterrupt):
        reduced(iter([table()[:17], table()[17:]]), Adding(5, interrupt), path)
    again = Adding()
    found = reduced(iter([table()[:17], table()[17:]]), again, path)
    np.testing.assert_array_equal(found, straight())
    assert again.blocks == list(range(6, N_BLOCKS))


def test_an_error_while_adding_keeps_the_older_checkpoint(tmp_path):
    """The block that failed may be in the sums already."""
    path = tmp_path / "pass.npz"
    with pytest.raises(RuntimeError, match="it failed"):
        reduced(table(), Adding(3, fail), path)
    assert not path.exists()
    with pytest.raises(RuntimeError, match="it failed"):
        reduced(table(), Adding(3, fail), path, every=0.0)
    again = Adding()
    np.testing.assert_array_equal(reduced(table(), again, path), straight())
    assert again.blocks == list(range(3, N_BLOCKS))


def test_a_pass_outside_of_the_main_thread(tmp_path):
    found = []
    path = tmp_path / "pass.npz"
    thread = threading.Thread(target=lambda: found.append(reduced(table(), Adding(), path)))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], straight())


def test_a_handler_of_others_is_left_alone(tmp_path):
    caught = []
    before = signal.signal(signal.SIGINT, lambda *_: caught.append(1))
    try:
        found = reduced(table(), Adding(3, interrupt), tmp_path / "pass.npz")
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught == [1]
    np.testing.assert_array_equal(found, straight())


def test_a_full_disk_costs_the_checkpoint_only(tmp_path, monkeypatch):
    path = tmp_path / "pass.npz"
    with pytest.raises(KeyboardInterrupt):
        reduced(table(), Adding(2, interrupt), path)
    older = path.read_bytes()

    def full(path, n_bytes):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("manykernels.scale.checkpoint.replacing", full)
    with (
        pytest.warns(RuntimeWarning, match="No space left.*goes on without checkpoints") as told,
        pytest.raises(RuntimeError, match="it failed"),
    ):
        reduced(table(), Adding(7, fail), path, every=0.0)
    assert len(told) == 1
    assert path.read_bytes() == older
    with pytest.warns(RuntimeWarning, match="goes on without checkpoints"):
        found = reduced(table(), Adding(), path, every=0.0)
    np.testing.assert_array_equal(found, straight())


def test_a_folder_that_is_not_there_is_told_before_the_pass(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere\. Create it"):
        reduced(table(), Adding(0, fail), tmp_path / "nowhere" / "pass.npz")


# -- checkpoints of other jobs ---------------------------------------------------------------


@pytest.fixture
def interrupted(tmp_path):
    path = tmp_path / "pass.npz"
    with pytest.raises(KeyboardInterrupt):
        reduced(table(), Adding(3, interrupt), path, seed=1, features=20)
    return path


@pytest.mark.parametrize(
    ("X", "job", "message"),
    [
        (table(), {"seed": 2, "features": 20}, "seed was 1 and is 2. Remove"),
        (table(), {"seed": 1}, "features was 20 and is not given"),
        (table(), {"seed": 1, "features": 20, "p": 2}, "p was not given and is 2"),
        (table()[:-1], {"seed": 1, "features": 20}, "n_rows was 58 and is 57"),
        (table(1), {"seed": 1, "features": 20}, "first rows was .* and is "),
    ],
)
def test_a_checkpoint_of_another_job(X, job, message, interrupted):
    with pytest.raises(ValueError, match=f"is the checkpoint of another pass: {message}"):
        reduced(X, Adding(), interrupted, **job)
    assert interrupted.exists()


def test_another_size_of_blocks(interrupted):
    checkpoint = Checkpoint(interrupted, Sums, {"seed": 1, "features": 20})
    with pytest.raises(ValueError, match="block_size was 5 and is 4"):
        row_blocks(table(), block_size=4).reduce(Adding(), None, checkpoint=checkpoint)


@pytest.mark.parametrize("content", [b"", b"no archive", None])
def test_a_file_that_is_no_checkpoint(content, tmp_path):
    path = tmp_path / "pass.npz"
    if content is None:
        np.savez(path, sums=np.zeros(3))
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match="is no checkpoint of a pass, or damaged"):
        reduced(table(), Adding(), path)


def test_half_a_file_is_damaged(interrupted):
    interrupted.write_bytes(interrupted.read_bytes()[:200])
    with pytest.raises(ValueError, match="is no checkpoint of a pass, or damaged"):
        reduced(table(), Adding(), interrupted, seed=1, features=20)


@pytest.mark.parametrize(
    "made",
    [
        np.array,
        sparse.csr_matrix,
        lambda X: pd.DataFrame(X, columns=list("abc")),
        lambda X: {"p": X[:, :1], "q": sparse.csr_matrix(X[:, 1:])},
    ],
)
def test_data_are_known_by_their_first_rows(made):
    def text(X):
        return first_rows(next(iter(row_blocks(made(X)))))

    X = table()
    assert text(X) == text(X.copy())
    X[4, 2] = np.nextafter(X[4, 2], 1)
    assert text(X) != text(table())

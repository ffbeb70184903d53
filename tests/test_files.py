"""Files are replaced whole or not at all: full disks, limits, interruptions, live mappings."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from manykernels import KernelStack
from manykernels.kernels import RBF, KernelUnion, Linear
from manykernels.utils import files

X = np.random.default_rng(0).normal(size=(12, 2))
OTHER = np.random.default_rng(1).normal(size=(9, 2))
UNION = KernelUnion([("rbf", RBF(1.0)), ("linear", Linear())]).fit(X)


def write(path, content=b"new", n_bytes=3):
    with files.replacing(path, n_bytes) as file:
        file.write(content)


def writers(path):
    """Everything that writes a file, onto `path`."""
    stack = UNION(OTHER)
    return {
        "replacing": lambda: write(path),
        "save": lambda: stack.save(path),
        "materialized": lambda: stack.materialized(path),
        "union": lambda: UNION(OTHER, memmap=path),
    }


WRITERS = list(writers("unused"))


def test_the_new_file_takes_the_place_of_the_old(tmp_path):
    path = tmp_path / "file"
    write(path, b"old")
    write(path, b"new!", n_bytes=4)
    assert path.read_bytes() == b"new!"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError(errno.ENOSPC, "full")])
def test_what_fails_inside_leaves_nothing_behind(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail():
        with files.replacing(path, 3) as file:
            file.write(b"ne")
            raise error

    with pytest.raises((KeyboardInterrupt, MemoryError, OSError)):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_links_and_permissions_stay(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("what", ["folder", os.devnull])
def test_what_is_no_file_is_not_replaced(tmp_path, what):
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="not a regular file"):
        write(tmp_path / what if what == "folder" else what)


def test_a_missing_folder_is_named_by_the_path_asked_for(tmp_path):
    path = tmp_path / "missing" / "file"
    with pytest.raises(FileNotFoundError, match="missing") as raised:
        write(path)
    assert raised.value.filename == str(path)


# -- full disks ------------------------------------------------------------------------------


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_is_an_error_before_anything_is_written(tmp_path, monkeypatch, writer):
    path = tmp_path / "stack"
    path.write_bytes(b"old")
    functions = writers(path)

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="GiB cannot be written") as raised:
        functions[writer]()
    assert raised.value.errno == errno.ENOSPC
    assert raised.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["stack"]


@pytest.mark.parametrize("answer", ["missing", errno.EOPNOTSUPP, errno.EINVAL])
@pytest.mark.parametrize("n_bytes", [0, 5, files._CHUNK, 2 * files._CHUNK + 7])
def test_space_is_reserved_by_writing_where_the_system_cannot(
    tmp_path, monkeypatch, answer, n_bytes
):
    def refuse(*arguments):
        raise OSError(answer, "not here")

    if answer == "missing":
        monkeypatch.delattr(files.os, "posix_fallocate", raising=False)
    else:
        monkeypatch.setattr(files.os, "posix_fallocate", refuse, raising=False)
    with files.replacing(tmp_path / "file", n_bytes) as file:
        assert os.fstat(file.fileno()).st_size == n_bytes
        assert file.tell() == 0


# A limit on the size of files stands for a full disk: it can be set without privileges.
LIMITED = """
import resource, sys
import numpy as np
from manykernels import KernelStack
old, large = KernelStack.from_arrays([np.eye(4)]), KernelStack.from_arrays([np.eye(200)])
old.save("save")
old.materialized("materialized")
resource.setrlimit(resource.RLIMIT_FSIZE, (2**14, resource.RLIM_INFINITY))
for writer in ("save", "materialized"):
    try:
        getattr(large, writer)(writer)
    except OSError as error:
        print(writer, error.errno)
"""


@pytest.mark.slow
def test_a_limit_on_the_size_of_files(tmp_path):
    answer = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=tmp_path, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == f"save {errno.EFBIG}\nmaterialized {errno.EFBIG}\n"
    assert_array_equal(KernelStack.load(tmp_path / "save").data, [np.eye(4)])
    assert_array_equal(np.load(tmp_path / "materialized"), [np.eye(4)])
    assert sorted(os.listdir(tmp_path)) == ["materialized", "save"]


class Interrupting(RBF):
    """A kernel during whose evaluation Ctrl-C is pressed."""

    def _evaluate(self, X, Y):
        raise KeyboardInterrupt


def test_an_interrupted_union_keeps_the_old_file(tmp_path):
    path = tmp_path / "stack.npy"
    expected = UNION(X, memmap=path).materialized()
    broken = KernelUnion([("linear", Linear()), ("stop", Interrupting(1.0))]).fit(X)
    with pytest.raises(KeyboardInterrupt):
        broken(OTHER, memmap=path)
    assert_array_equal(np.load(path), expected.data)
    assert os.listdir(tmp_path) == ["stack.npy"]


def test_an_indefinite_union_keeps_the_old_file(tmp_path):
    path = tmp_path / "stack.npy"
    expected = UNION(X, memmap=path).materialized()
    negative = KernelUnion([("negative", Linear() * -1.0)]).fit(X)
    with pytest.raises(ValueError, match="'negative' is not positive semi-definite"):
        negative(X, memmap=path)
    assert_array_equal(np.load(path), expected.data)
    assert os.listdir(tmp_path) == ["stack.npy"]


def test_an_interrupted_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "stack.npz"
    UNION(X).save(path)
    stack = UNION(OTHER)

    def interrupted(j, rows):
        if j == 1:
            raise KeyboardInterrupt
        return stack.data[j, rows]

    monkeypatch.setattr(stack, "_values", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stack.save(path)
    assert_array_equal(KernelStack.load(path).data, UNION(X).data)
    assert os.listdir(tmp_path) == ["stack.npz"]


# -- live stacks -----------------------------------------------------------------------------


def test_a_second_union_leaves_the_first_stack_alone(tmp_path):
    path = tmp_path / "stack.npy"
    first = UNION(X, memmap=path)
    second = UNION(OTHER, memmap=path)
    assert_array_equal(first.data, UNION(X).data)
    assert_array_equal(second.data, UNION(OTHER).data)
    assert_array_equal(np.load(path), second.data)


def test_a_stack_may_be_materialized_onto_its_own_file(tmp_path):
    path = tmp_path / "stack.npy"
    stack = UNION(X, memmap=path)
    scaled = stack.scaled(np.array([2.0, 3.0]))
    onto = scaled.materialized(path)
    assert_array_equal(stack.data, UNION(X).data)
    assert_array_equal(onto.data, scaled.materialized().data)
    assert onto.data.filename == str(path) or onto.data.filename == path
    onto.save(path)
    assert_array_equal(KernelStack.load(path).data, onto.data)


def test_a_stack_whose_file_is_gone_takes_its_values_along(tmp_path):
    # joblib would have another process open a mapped array by the name of its file.
    path = tmp_path / "stack.npy"
    first = UNION(X, memmap=path)
    assert isinstance(pickled_values(first), np.memmap)
    UNION(OTHER, memmap=path)
    for stack in (first, first.with_samples(range(len(X)))):
        values = pickled_values(stack)
        assert not isinstance(values, np.memmap)
        assert_array_equal(values, UNION(X).data)


def pickled_values(stack):
    _, (values,) = stack._stored.__reduce__()
    return values


def test_saving_copies_no_stack_into_memory(tmp_path, monkeypatch):
    stack = UNION(X, memmap=tmp_path / "stack.npy")
    monkeypatch.setattr("manykernels.utils.numerics.available_memory", lambda: 0)
    stack.save(tmp_path / "stack.npz")
    with pytest.raises(MemoryError, match=r"data of .*stack\.npz"):
        KernelStack.load(tmp_path / "stack.npz")
    monkeypatch.undo()
    assert_array_equal(KernelStack.load(tmp_path / "stack.npz").data, stack.data)

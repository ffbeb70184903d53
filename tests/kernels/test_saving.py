"""Saved stacks: damaged, foreign and dishonest files are refused with their path."""

import io
import re
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from manykernels import MKSVC, KernelStack
from manykernels.kernels.stack import check_stack
from manykernels.kernels.transforms import Center
from tests.persistence.archives import DAMAGED_HEADERS

DATA = np.stack([np.eye(4) + 1.0, 2 * np.eye(4)])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stack.npz"


@pytest.fixture
def saved(path):
    KernelStack.from_arrays(DATA, ["a", "b"]).save(path)
    return path


def rewrite(path, compression=zipfile.ZIP_STORED, **changes):
    """The archive at `path` with other arrays; None leaves one out, bytes are written as such."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files} | changes
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, array in arrays.items():
            if array is None:
                continue
            buffer = io.BytesIO()
            if isinstance(array, bytes):
                buffer.write(array)
            else:
                np.save(buffer, array)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def refused(path, message, error=ValueError):
    with pytest.raises(error, match=f"{re.escape(str(path))}.*{message}"):
        KernelStack.load(path)


# -- files that are none ---------------------------------------------------------------------


def test_an_empty_file(path):
    path.write_bytes(b"")
    refused(path, "it is empty")


@pytest.mark.parametrize("content", [b"garbage", b"PK\x03\x04garbage", b"\x00" * 1000])
def test_garbage(path, content):
    path.write_bytes(content)
    refused(path, "not a saved KernelStack")


def test_every_truncation_is_found(saved):
    whole = saved.read_bytes()
    for length in range(0, len(whole), 97):
        saved.write_bytes(whole[:length])
        refused(saved, "")


def test_a_flipped_bit_is_found(saved):
    whole = bytearray(saved.read_bytes())
    whole[whole.index(np.float64(2.0).tobytes())] ^= 1
    saved.write_bytes(whole)
    refused(saved, "CRC")


def test_a_missing_file_is_missing(path):
    with pytest.raises(FileNotFoundError):
        KernelStack.load(path)


@pytest.mark.parametrize("missing", ["data", "names", "flags"])
def test_what_is_missing_is_named(saved, missing):
    rewrite(saved, **{missing: None})
    refused(saved, f"it has no {missing}")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flags": np.ones(3, dtype=bool)}, "its flags are"),
        ({"flags": np.ones(5)}, "its flags are"),
        ({"names": np.array(["a"])}, "names has 1 entries, but there are 2 kernels"),
        ({"names": np.array(["a", "a"])}, "must differ"),
        ({"data": DATA.astype(int)}, "float64 or float32"),
        ({"data": DATA[0]}, "float64 or float32"),
        ({"data": DATA[:, :3]}, "as many rows as columns"),
        ({"row_diag": np.ones((2, 3))}, "row_diag must have shape"),
        ({"features": np.ones((3, 1))}, "one row per row"),
        ({"row_samples": np.array(["x"])}, "1 names for 4 samples"),
        ({"data": np.array([[[print]]])}, "allow_pickle=False"),
        ({"data": b"\x93NUMPY\x01\x00"}, "not a saved KernelStack"),
        ({"data": b"no array at all"}, "not a saved KernelStack"),
    ],
)
def test_parts_that_do_not_fit(saved, changes, message):
    rewrite(saved, **changes)
    refused(saved, message)


# -- sizes before memory -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 10**6, 10**6), r"data should have 8000000000000 bytes .* and has 0"),
        ((0, 10**30, 1), "not a saved KernelStack"),
        ((0, -1, 1), "not a saved KernelStack|at least one kernel"),
    ],
)
def test_a_header_with_a_shape_that_cannot_be(saved, shape, message):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    rewrite(saved, data=header.getvalue())
    refused(saved, message)


@pytest.mark.parametrize("damage", DAMAGED_HEADERS)
def test_a_header_that_python_cannot_parse(saved, damage):
    stream = io.BytesIO()
    np.save(stream, DATA)
    rewrite(saved, data=damage(stream.getvalue()))
    refused(saved, "its header is damaged")


def test_a_compressed_file_is_not_inflated_beyond_memory(saved, monkeypatch):
    rewrite(
        saved, zipfile.ZIP_DEFLATED, data=np.zeros((2, 600, 600)), row_diag=None, col_diag=None
    )
    assert saved.stat().st_size < 20_000
    monkeypatch.setattr("manykernels.utils.numerics.available_memory", lambda: 10**6)
    monkeypatch.setattr(zipfile.ZipExtFile, "read", _few_bytes)
    refused(saved, r"needs 0\.0 GiB", MemoryError)


def _few_bytes(self, n=-1, read=zipfile.ZipExtFile.read):
    assert n < 10**6, "read before the size was checked"
    return read(self, n)


def test_compressed_and_fortran_ordered_arrays_are_read(saved):
    rewrite(saved, zipfile.ZIP_DEFLATED, data=np.asfortranarray(DATA))
    stack = KernelStack.load(saved)
    assert_array_equal(stack.data, DATA)
    assert stack.data.flags.c_contiguous


# -- flags are found out again -------------------------------------------------------------------

TRUSTED = np.ones(5, dtype=bool)
SWAP = np.array([[0.0, 1.0], [1.0, 0.0]])
NAMED = {"names": np.array(["swap"]), "row_diag": None, "col_diag": None}


@pytest.mark.parametrize(
    ("entry", "message"), [(np.nan, "not finite"), (np.inf, "not finite"), (0.5, "not symmetric")]
)
def test_kernels_are_checked_whatever_the_file_says(saved, entry, message):
    broken = DATA.copy()
    broken[1, 2, 1] = entry
    rewrite(saved, data=broken, flags=TRUSTED)
    refused(saved, f"Kernel 'b' .*{message}|Kernel 'b' is {message}")


def test_an_indefinite_kernel_is_not_believed_to_be_definite(saved):
    rewrite(saved, data=SWAP[None], flags=TRUSTED, **NAMED)
    stack = KernelStack.load(saved)
    assert not stack.checked
    assert_array_equal(stack.combine([2.0]), 2 * SWAP)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        MKSVC(kernels="precomputed").fit(stack, [0, 1])
    with pytest.raises(ValueError, match=r"stack\.npz: Kernel 'swap' is not positive"):
        KernelStack.load(saved, psd="raise")
    assert KernelStack.load(saved, psd="ignore").checked
    assert np.linalg.eigvalsh(KernelStack.load(saved, psd="clip").data[0])[0] > -1e-12


def test_what_is_definite_once_centred_keeps_that_mark(path):
    conditionally = KernelStack(-SWAP[None], ["distances"], gram=True)
    check_stack(conditionally, centered=True).save(path)
    stack = KernelStack.load(path)
    assert stack.checked
    assert not stack.guarantees.psd
    assert stack.guarantees.psd_if_centered


def test_a_diagonal_has_to_be_that_of_the_kernel(saved):
    rewrite(saved, row_diag=np.ones((2, 4)))
    refused(saved, "row_diag of kernel 'a' is not its diagonal: 1 apart at sample 0")


def test_centred_is_believed_where_it_is_true(path, saved):
    assert not KernelStack.load(saved).centered
    rewrite(saved, flags=TRUSTED)
    assert not KernelStack.load(saved).centered
    Center().fit_transform(KernelStack.from_arrays(DATA)).save(path)
    assert KernelStack.load(path).centered


def test_single_precision_is_saved_as_such(path):
    stack = KernelStack.from_arrays(DATA.astype(np.float32))
    stack.save(path)
    assert KernelStack.load(path).dtype == np.float32
    Center().fit_transform(stack).save(path)
    assert KernelStack.load(path).dtype == np.float64


def test_samples_that_lack_kernels_and_views(tmp_path):
    K = np.array([np.eye(3), 2 * np.eye(3)])
    K[1, 2] = K[1, :, 2] = np.nan
    stack = KernelStack.from_arrays(K, missing=True).with_views(["sound", "text"])
    stack.save(tmp_path / "stack.npz")
    loaded = KernelStack.load(tmp_path / "stack.npz")
    assert_array_equal(loaded.data, K)
    assert loaded.views == ("sound", "text")
    assert loaded.checked

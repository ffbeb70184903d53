"""Files of MATLAB, as SciPy writes them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.io import savemat

from manykernels.cli.files import read_mat5

MOST = 2**20


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dtype", [float, np.float32, np.int8, np.uint16, np.int64, bool])
def test_numbers(tmp_path, packed, dtype):
    K = np.arange(12).reshape(3, 4).astype(dtype)
    savemat(tmp_path / "k.mat", {"K": K, "v": np.arange(3.0)}, do_compression=packed)
    found = read_mat5(tmp_path / "k.mat", MOST)
    assert_array_equal(found["K"], K)
    assert_array_equal(found["v"], [[0.0, 1.0, 2.0]])


@pytest.mark.parametrize("packed", [False, True])
def test_texts(tmp_path, packed):
    texts = ["ann", "bob", "zoë", "数据"]
    cell = np.array(texts, dtype=object)
    savemat(tmp_path / "k.mat", {"cell": cell, "rows": np.array(texts[:2])}, do_compression=packed)
    found = read_mat5(tmp_path / "k.mat", MOST)
    assert found["cell"] == texts
    assert found["rows"] == texts[:2]


@pytest.mark.parametrize(
    "value", [1j * np.eye(2), sparse.eye(3), {"a": 1}, np.array([1, "a"], dtype=object)]
)
def test_what_is_no_kernel(tmp_path, value):
    savemat(tmp_path / "k.mat", {"K": value})
    with pytest.raises(ValueError, match="its variable 'K' is"):
        read_mat5(tmp_path / "k.mat", MOST)


def test_what_unpacks_to_more(tmp_path):
    savemat(tmp_path / "k.mat", {"K": np.zeros((1000, 1000))}, do_compression=True)
    with pytest.raises(ValueError, match="far more than its size"):
        read_mat5(tmp_path / "k.mat", MOST)


def test_other_versions(tmp_path):
    (tmp_path / "k.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(600))
    with pytest.raises(ValueError, match=r"7\.3 are not supported: save it with -v7"):
        read_mat5(tmp_path / "k.mat", MOST)
    savemat(tmp_path / "k.mat", {"K": np.eye(2)}, format="4")
    with pytest.raises(ValueError, match="not a MAT file of version 5 to 7"):
        read_mat5(tmp_path / "k.mat", MOST)


def test_damage(tmp_path):
    """A bit of every byte of a small file in turn: an answer or a ValueError."""
    savemat(tmp_path / "k.mat", {"K": np.eye(2), "id": np.array(["a", "b"], dtype=object)})
    content = (tmp_path / "k.mat").read_bytes()
    refused = 0
    for place in range(128, len(content)):
        data = bytearray(content)
        data[place] ^= 1 << place % 8
        (tmp_path / "k.mat").write_bytes(data)
        try:
            read_mat5(tmp_path / "k.mat", MOST)
        except ValueError:
            refused += 1
    assert refused > 100

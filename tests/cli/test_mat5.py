"""Files of MATLAB, as SciPy writes them."""

import sys

import h5py
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.io import savemat

import manykernels as mk
from manykernels.cli.console import DataError
from manykernels.cli.files import read_mat, read_mat5
from tests.cli.conftest import QUICK, N, frames

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


def test_cells_of_kernels(tmp_path):
    kernels = [np.eye(3), np.arange(9.0).reshape(3, 3)]
    cell = np.empty(2, dtype=object)
    cell[:] = kernels
    numbers = np.array([0, 1, 1], dtype=object)
    savemat(tmp_path / "k.mat", {"K": cell, "y": numbers})
    save73(tmp_path / "k73.mat", {"K": kernels, "y": [np.eye(1) * 0, np.eye(1), np.eye(1)]})
    for name in ("k.mat", "k73.mat"):
        variables = read_mat(tmp_path / name, MOST)
        assert list(variables) == ["K_0", "K_1", "y"]
        assert_array_equal(variables["K_1"], kernels[1])
        assert_array_equal(variables["y"], [0, 1, 1])
    savemat(tmp_path / "k.mat", {"K": cell, "K_1": np.eye(3)})
    with pytest.raises(ValueError, match="several kernels are called 'K_1'"):
        read_mat(tmp_path / "k.mat", MOST)


def test_a_cell_that_unpacks_to_more(tmp_path):
    save73(tmp_path / "k.mat", {"K": [np.zeros((500, 500)), np.zeros((500, 500))]})
    with pytest.raises(ValueError, match="far more than its size"):
        read_mat(tmp_path / "k.mat", MOST)


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
    savemat(tmp_path / "k.mat", {"K": np.eye(2)}, format="4")
    with pytest.raises(ValueError, match=r"not a MAT file of version 5 to 7\.3"):
        read_mat(tmp_path / "k.mat", MOST)


# -- version 7.3 -----------------------------------------------------------------------------


def save73(path, variables):
    """Write variables as MATLAB does with -v7.3."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            if isinstance(value, list):
                cells = file.require_group("#refs#")
                references = []
                for j, content in enumerate(value):
                    is_text = isinstance(content, str)
                    codes = [[ord(letter)] for letter in content] if is_text else content.T
                    codes = np.array(codes, dtype=np.uint16 if is_text else float)
                    cell = cells.create_dataset(f"{name}{j}", data=codes)
                    cell.attrs["MATLAB_class"] = np.bytes_("char" if is_text else "double")
                    references.append(cell.ref)
                data = file.create_dataset(name, (1, len(value)), dtype=h5py.ref_dtype)
                data[0] = references
                data.attrs["MATLAB_class"] = np.bytes_("cell")
            else:
                data = file.create_dataset(name, data=np.asarray(value).T, compression="gzip")
                data.attrs["MATLAB_class"] = np.bytes_("double")
    content = bytearray(path.read_bytes())
    content[:128] = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    path.write_bytes(content)


def test_version_73(tmp_path):
    path = tmp_path / "k.mat"
    K = np.arange(24.0).reshape(2, 3, 4)
    texts = ["ann", "bob", "zoë", "数据"]
    save73(path, {"K": K, "M": K[0], "y": np.arange(4.0)[:, None], "id": texts})
    variables = read_mat(path, MOST)
    assert_array_equal(variables["K"], K)
    assert_array_equal(variables["M"], K[0])
    assert_array_equal(variables["y"], np.arange(4.0))
    assert variables["id"].tolist() == texts


@pytest.mark.parametrize("save", [savemat, save73])
def test_one_new_sample(folder, run, save):
    """Its kernel is a vector, as MATLAB has it."""
    a, _, label = frames()
    K = (a @ a.T).to_numpy()
    save(folder / "train.mat", {"K": K[:N, :N], "rank": np.arange(N)[None]})
    save(folder / "new.mat", {"K": K[N : N + 1, :N], "rank": np.array([[50.0]])})
    options = ("--target", "a.csv:label", *QUICK, "--output", "m.skops")
    code, _, err = run("fit", "--view", "k=train.mat", *options)
    assert code == 0, err
    code, out, err = run("predict", "m.skops", "--view", "k=new.mat")
    assert code == 0, err
    same = mk.MKFDACV("precomputed", ps=[2], regs=[1]).fit([K[:N, :N]], label[:N])
    assert out.splitlines()[1].split(",")[1] == same.predict([K[N : N + 1, :N]])[0]


def test_version_73_that_unpacks_to_more(tmp_path):
    save73(tmp_path / "k.mat", {"K": np.zeros((1000, 1000))})
    with pytest.raises(ValueError, match="far more than its size"):
        read_mat(tmp_path / "k.mat", MOST)


def test_version_73_with_other_variables(tmp_path):
    path = tmp_path / "k.mat"
    save73(path, {"K": np.eye(2)})
    with h5py.File(path, "a") as file:
        file.create_group("S")  # a struct
    with pytest.raises(ValueError, match="its variable 'S' is neither a full matrix"):
        read_mat(path, MOST)
    save73(path, {"K": np.eye(2)})
    with h5py.File(path, "a") as file:
        file["L"] = h5py.ExternalLink("other.mat", "/K")
    with pytest.raises(ValueError, match="its variable 'L' is neither a full matrix"):
        read_mat(path, MOST)


def test_version_73_without_h5py(tmp_path, monkeypatch):
    path = tmp_path / "k.mat"
    save73(path, {"K": np.eye(2)})
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(
        DataError, match=r"is a MAT file of version 7\.3, which needs h5py: pip in"
    ):
        read_mat(path, MOST)


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

"""The loaders, on small files written in the layout of the public ones."""

import numpy as np
import pytest
from scipy import io

from benchmarks import _data

SOURCES = {
    "sonar": ("Sonar", ["sonar/sonar.csv"]),
    "ionosphere": ("Ionosphere", ["ionosphere/ionosphere.csv"]),
    "satimage": ("Landsat Satellite", ["satimage/sat.trn.txt", "satimage/sat.tst.txt"]),
    "mfeat": (
        "Multiple Features",
        [f"mfeat/mfeat-{v}.txt" for v in ("fac", "fou", "mor", "pix")]
        + [f"mfeat/mfeat-{v}.openml.csv" for v in ("kar", "zer")],
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYKERNELS_DATA", str(tmp_path))
    for name in SOURCES:
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "n_columns", "labels"), [("sonar", 60, "RMMRM"), ("ionosphere", 34, "gbggb")]
)
def test_rows_with_the_class_at_the_end(name, n_columns, labels, folder, rng):
    X = rng.random((5, n_columns)).round(4)
    y = np.array(list(labels))
    lines = [",".join([*map(str, row), label]) for row, label in zip(X, y, strict=True)]
    (folder / f"{name}/{name}.csv").write_text("\n".join(lines) + "\n")
    X_read, y_read = getattr(_data, name)()
    np.testing.assert_array_equal(X_read, X)
    np.testing.assert_array_equal(y_read, y)


def test_satimage_puts_the_training_part_first(folder, rng):
    table = np.hstack([rng.integers(0, 255, (7, 36)), [[i] for i in (1, 2, 3, 4, 5, 7, 7)]])
    np.savetxt(folder / "satimage/sat.trn.txt", table[:4], fmt="%d")
    np.savetxt(folder / "satimage/sat.tst.txt", table[4:], fmt="%d")
    X, y = _data.satimage()
    np.testing.assert_array_equal(X, table[:, :36])
    np.testing.assert_array_equal(y, table[:, 36])
    assert y.dtype.kind == "i"


def test_mfeat(folder, rng):
    written = {v: rng.random((2000, 3)).round(6) for v in ("fac", "fou", "mor", "pix")}
    for v, view in written.items():
        np.savetxt(folder / f"mfeat/mfeat-{v}.txt", view, fmt="%12.6f")
    for v in ("kar", "zer"):
        written[v] = rng.random((2000, 2)).round(6)
        lines = [
            "att1,att2,class",
            *(f"{a},{b},{i // 200 + 1}" for i, (a, b) in enumerate(written[v])),
        ]
        (folder / f"mfeat/mfeat-{v}.openml.csv").write_text("\n".join(lines))
    views, y = _data.mfeat()
    assert list(views) == list(written)
    for v, view in written.items():
        np.testing.assert_array_equal(views[v], view)
    np.testing.assert_array_equal(np.bincount(y), np.full(10, 200))
    assert (np.diff(y) >= 0).all()


def test_leaves(tmp_path, monkeypatch, rng):
    monkeypatch.setenv("MANYKERNELS_DATA", str(tmp_path))
    (tmp_path / "leaves").mkdir()
    written = [rng.random((4, 6)) for _ in range(3)]  # columns are samples
    cells = np.empty((1, 3), dtype=object)
    cells[0] = written
    content = {"data": cells, "truth": np.arange(6)[:, None]}
    io.savemat(tmp_path / "leaves/100Leaves.mat", content)
    views, y = _data.leaves()
    assert list(views) == ["view1", "view2", "view3"]
    for table, view in zip(written, views.values(), strict=True):
        np.testing.assert_array_equal(view, table.T)
    np.testing.assert_array_equal(y, np.arange(6))


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("is_set", [True, False])
def test_missing_data_says_what_where_and_whence(name, is_set, tmp_path, monkeypatch):
    if is_set:
        monkeypatch.setenv("MANYKERNELS_DATA", str(tmp_path))
    else:
        monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    title, files = SOURCES[name]
    with pytest.raises(SystemExit, match="MANYKERNELS_DATA") as error:
        getattr(_data, name)()
    message = str(error.value)
    assert "UCI Machine Learning Repository" in message
    assert title in message
    assert all(file in message for file in files)
    assert (str(tmp_path) in message) == is_set


def test_only_the_missing_file_is_named(folder):
    (folder / "satimage/sat.trn.txt").write_text("")
    with pytest.raises(SystemExit) as error:
        _data.satimage()
    assert "MANYKERNELS_DATA/satimage/sat.tst.txt" in str(error.value)
    assert "MANYKERNELS_DATA/satimage/sat.trn.txt" not in str(error.value)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_multiloc(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYKERNELS_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match="MultiLoc"):
        _data.multiloc()
    _, files = _data._SOURCES["multiloc"]
    (tmp_path / "protein_subloc_multiloc").mkdir()
    for number, file in enumerate(files):
        (tmp_path / file).write_text(f">P{number} SP 14\nMK\nVL\n>Q{number}\nMKK\n")
    sequences, y = _data.multiloc()
    assert sequences.tolist() == ["MKVL", "MKK"] * 11
    assert y[[0, 1, 2, -1]].tolist() == ["ER", "ER", "Golgi", "vacuolar"]

"""fetch_dataset: from a folder, through a server on this machine, and what is refused."""

import hashlib
import struct
import sys
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from manykernels import Views
from manykernels.datasets import fetch_dataset, fetching
from manykernels.datasets.fetching import SOURCES, read_numbers

SEEN = ["sonar", "ionosphere", "satimage", "mfeat", "pendigits", "concrete"]
NOT_SEEN = ["heart", "segment", "white_wine"]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def write_sonar(folder, rng):
    X, y = rng.random((208, 60)).round(4), rng.choice(["R", "M"], 208)
    lines = [",".join([*map(str, row), label]) for row, label in zip(X, y, strict=True)]
    (folder / "sonar").mkdir(parents=True)
    (folder / "sonar/sonar.csv").write_text("\n".join(lines))
    return X, y


def test_sonar_from_a_folder(tmp_path, rng):
    X, y = write_sonar(tmp_path, rng)
    found = fetch_dataset("sonar", data_home=tmp_path, download_if_missing=False)
    assert_array_equal(found.data, X)
    assert_array_equal(found.target, y)
    assert found.filenames == [str(tmp_path / "sonar" / "sonar.csv")]
    for text in ("208 sonar echoes", "https://archive.ics.uci.edu/dataset/151", "compared with"):
        assert text in found.DESCR
    again = fetch_dataset("sonar", data_home=tmp_path, return_X_y=True)
    assert_array_equal(again[0], X)
    assert_array_equal(again[1], y)


def test_the_folder_of_the_environment(tmp_path, rng, monkeypatch):
    write_sonar(tmp_path, rng)
    monkeypatch.setenv("MANYKERNELS_DATA", str(tmp_path))
    assert fetch_dataset("sonar").data.shape == (208, 60)


def test_views_from_a_folder(tmp_path, rng, monkeypatch):
    """Pen digits, written as they are published but fewer: train before test, labels last."""
    few = replace(SOURCES["pendigits"], n_rows=60)
    monkeypatch.setitem(fetching.SOURCES, "pendigits", few)
    (tmp_path / "pendigits4v").mkdir()
    sizes = {"dyn": 16, "sta4": 16, "sta8": 64, "sta16": 256, "label": 1}
    written = {}
    for name, n_columns in sizes.items():
        written[name] = rng.integers(1, 11, (60, n_columns))
        for part, rows in (("train", slice(0, 40)), ("test", slice(40, None))):
            path = tmp_path / f"pendigits4v/pendigits_{name}_{part}.csv"
            np.savetxt(path, written[name][rows], fmt="%d", delimiter=",")
    views, y = fetch_dataset("pendigits", data_home=tmp_path, return_X_y=True)
    assert isinstance(views, Views)
    assert views.names == ["dyn", "sta4", "sta8", "sta16"]
    for name in views.names:
        assert_array_equal(views[name], written[name])
    assert_array_equal(y, written["label"].ravel())


def test_rows_with_numbers_of_classes(tmp_path, rng):
    table = np.column_stack([rng.random((270, 13)).round(3), rng.integers(1, 3, 270)])
    (tmp_path / "heart").mkdir()
    np.savetxt(tmp_path / "heart/heart.dat", table, fmt="%g")
    found = fetch_dataset("heart", data_home=tmp_path)
    assert_array_equal(found.data, table[:, :13])
    assert_array_equal(found.target, table[:, 13])
    assert "NOT compared with checksums" in found.DESCR


def test_grades_of_wine(tmp_path, rng):
    table = np.column_stack([rng.random((4898, 11)).round(3), rng.integers(3, 10, 4898)])
    (tmp_path / "white_wine").mkdir()
    header = ";".join(f'"column {i}"' for i in range(12))
    path = tmp_path / "white_wine/winequality-white.csv"
    np.savetxt(path, table, fmt="%g", delimiter=";", header=header, comments="")
    X, y = fetch_dataset("white_wine", data_home=tmp_path, return_X_y=True)
    assert_array_equal(X, table[:, :11])
    assert_array_equal(y, table[:, 11])


# -- Excel files ---------------------------------------------------------------------------------


def record(kind, content=b""):
    return struct.pack("<HH", kind, len(content)) + content


def worksheet(titles, rows):
    """Content of an ``.xls`` file of Excel 3: a line of titles, and numbers below it."""
    cells = [
        record(0x0204, struct.pack("<HHHH", 0, j, 0, len(title)) + title.encode())
        for j, title in enumerate(titles)
    ]
    cells += [
        record(0x0203, struct.pack("<HHHd", i + 1, j, 0, value))
        for (i, j), value in np.ndenumerate(rows)
    ]
    begin = record(0x0209, struct.pack("<HHH", 0, 0x10, 0))
    return begin + b"".join(cells) + record(0x000A)


def test_concrete_from_a_folder(tmp_path, rng):
    table = rng.random((1030, 9))
    (tmp_path / "concrete").mkdir()
    path = tmp_path / "concrete/Concrete_Data.xls"
    path.write_bytes(worksheet([f"column {j}" for j in range(9)], table))
    X, y = fetch_dataset("concrete", data_home=tmp_path, return_X_y=True)
    assert_array_equal(X, table[:, :8])
    assert_array_equal(y, table[:, 8])


def test_without_xlrd_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xlrd", None)
    with pytest.raises(ImportError, match=r"pip install \"manykernels\[cli\]\""):
        read_numbers(tmp_path / "some.xls")


@pytest.mark.parametrize("content", [b"no such file", bytes.fromhex("d0cf11e0a1b11ae1") * 100])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "some.xls"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"some\.xls cannot be read as an \.xls file"):
        read_numbers(path)


# -- downloads -----------------------------------------------------------------------------------


def test_downloaded_into_the_folder(tmp_path, rng, monkeypatch):
    """From a server that has what is written here, with its checksum in the table."""
    monkeypatch.setenv("no_proxy", "*")
    X, _ = write_sonar(tmp_path / "web", rng)
    content = (tmp_path / "web/sonar/sonar.csv").read_bytes()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "web"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        source = SOURCES["sonar"]
        file = replace(
            source.files[0],
            url=f"http://127.0.0.1:{server.server_port}/sonar/sonar.csv",
            sha256=hashlib.sha256(content).hexdigest(),
            n_bytes=len(content),
        )
        monkeypatch.setitem(fetching.SOURCES, "sonar", replace(source, files=(file,)))
        found = fetch_dataset("sonar", data_home=tmp_path / "new" / "home")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert_array_equal(found.data, X)
    assert (tmp_path / "new/home/sonar/sonar.csv").read_bytes() == content
    offline = fetch_dataset("sonar", data_home=tmp_path / "new" / "home")
    assert_array_equal(offline.data, X)


@pytest.mark.parametrize("name", SOURCES)
def test_a_missing_data_set(name, tmp_path):
    with pytest.raises(OSError, match=f"is not in {tmp_path}"):
        fetch_dataset(name, data_home=tmp_path, download_if_missing=False)
    assert list(tmp_path.iterdir()) == []


def test_names_that_do_not_exist():
    with pytest.raises(
        ValueError, match=r"no data set named 'iris'; choose one of 'sonar', 'iono"
    ):
        fetch_dataset("iris")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "0.5," * 60 + "M\n",
            r"'sonar' has the shape \(1, 60\) and 1 targets in .*sonar\.csv; the publ",
        ),
        ("<html>not found</html>", r"sonar\.csv"),
        ("a,b\n" * 208, r"'sonar' cannot be read from .*sonar\.csv: could not convert"),
    ],
)
def test_files_that_hold_something_else(tmp_path, content, message):
    (tmp_path / "sonar").mkdir()
    (tmp_path / "sonar/sonar.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        fetch_dataset("sonar", data_home=tmp_path)


def test_the_table_of_sources():
    assert list(SOURCES) == [*SEEN, *NOT_SEEN]
    files = [file for source in SOURCES.values() for file in source.files]
    assert len({file.path for file in files}) == len({file.url for file in files}) == len(files)
    for name, source in SOURCES.items():
        assert f'"{name}"' in fetch_dataset.__doc__
        for file in source.files:
            assert file.url.startswith("https://")
            assert ".." not in file.path
            assert not file.path.startswith("/")
            assert (file.sha256 is not None) == (file.n_bytes is not None) == (name in SEEN)
            if file.sha256 is not None:
                assert len(bytes.fromhex(file.sha256)) == 32

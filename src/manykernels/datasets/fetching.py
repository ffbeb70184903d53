"""Public data sets by name, from a folder or the web."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from importlib.resources import files
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import numpy as np
from sklearn.utils import Bunch

from ..kernels import Views
from ..utils.files import replacing

# -- Parsers of public data sets ------------------------------------------------------------------
#
# Each takes the paths of the files of a data set, in the order of its source, and returns a table,
# or a dict of tables, and the targets.


Parsed = tuple[Any, np.ndarray]


def labelled_rows(path: Path) -> Parsed:
    """Read a CSV file with the class in the last column, of which the first letter is used."""
    table = np.loadtxt(path, delimiter=",", dtype=str, ndmin=2)
    return table[:, :-1].astype(float), table[:, -1].astype("U1")


def numbered_rows(*paths: Path) -> Parsed:
    """Read files separated by blanks, with the class in the last column, and stack their rows."""
    table = np.vstack([np.loadtxt(path, ndmin=2) for path in paths])
    return table[:, :-1], table[:, -1].astype(int)


def mfeat(*paths: Path) -> Parsed:
    """Read a view from each file; files of OpenML have a header, and the class last."""
    views = {}
    for path in paths:
        name = path.name.split(".")[0].removeprefix("mfeat-")
        views[name] = _openml(path) if path.suffix == ".csv" else np.loadtxt(path)
    return views, np.repeat(np.arange(10), 200)


def _openml(path: Path) -> np.ndarray:
    """Read a CSV file with a header, without its last column."""
    with path.open() as file:
        n_columns = file.readline().count(",") + 1
    return np.loadtxt(path, delimiter=",", skiprows=1, usecols=range(n_columns - 1))


def pendigits(*paths: Path) -> Parsed:
    """Read pairs of a training and a test file, of each view and finally of the labels."""
    tables = [np.loadtxt(path, delimiter=",", ndmin=2) for path in paths]
    joined = [np.vstack(pair) for pair in zip(tables[::2], tables[1::2], strict=True)]
    views = dict(zip(("dyn", "sta4", "sta8", "sta16"), joined, strict=False))
    return views, joined[-1].ravel().astype(int)


def concrete(path: Path) -> Parsed:
    """Read an Excel sheet whose last column is the target."""
    table = read_numbers(path)
    return table[:, :-1], table[:, -1]


def read_numbers(path: Path) -> np.ndarray:
    """Return the numbers below the header line of the first sheet of an ``.xls`` file.

    xlrd is used directly: pandas deprecates its own use of it.
    """
    try:
        import xlrd  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(f'{path} needs xlrd: pip install "manykernels[cli]".') from error
    try:
        sheet = xlrd.open_workbook(path).sheet_by_index(0)
    except (xlrd.XLRDError, xlrd.compdoc.CompDocError) as error:
        raise ValueError(f"{path} cannot be read as an .xls file: {error}") from error
    return np.array([sheet.row_values(i) for i in range(1, sheet.nrows)], dtype=float)


def wine_quality(path: Path) -> Parsed:
    """Read a file separated by semicolons with a header, and the target in the last column."""
    table = np.loadtxt(path, delimiter=";", skiprows=1, ndmin=2)
    return table[:, :-1], table[:, -1]


# -- Downloads ------------------------------------------------------------------------------------
#
# A download is kept only if it is complete and its SHA-256 is the expected one. It is written to a
# temporary file first (:func:`manykernels.utils.files.replacing`), so that an interruption leaves
# no file. Schemes other than ``http`` and ``https`` are refused, also in redirections. Files that
# exist in the folder are not checked.


#: Environment variable with the folder of data sets.
VARIABLE = "MANYKERNELS_DATA"
# Seconds without a response after which a download fails.
TIMEOUT = 30.0
# Bytes that are read at once.
_CHUNK = 2**16
# Largest accepted size of a file of unknown size, in bytes: far above those of the data sets, so
# that an endless response does not fill the disk.
_MOST = 2**26


@dataclass(frozen=True)
class File:
    """A file of a data set: its path in the folder, its URL, checksum and size.

    `sha256` and `n_bytes` are None if they are unknown.
    """

    path: str
    url: str
    sha256: str | None = None
    n_bytes: int | None = None


class _Web(urllib.request.OpenerDirector):
    """Opener of ``http`` and ``https`` URLs only."""

    def __init__(self) -> None:
        super().__init__()
        for handler in (
            urllib.request.ProxyHandler,
            urllib.request.HTTPHandler,
            urllib.request.HTTPSHandler,
            urllib.request.HTTPRedirectHandler,
            urllib.request.HTTPDefaultErrorHandler,
            urllib.request.HTTPErrorProcessor,
            urllib.request.UnknownHandler,
        ):
            self.add_handler(handler())


def data_folder(data_home: str | os.PathLike[str] | None) -> Path:
    """Return `data_home`, or else the folder of the environment variable or a default."""
    if data_home is None:
        data_home = os.environ.get(VARIABLE) or Path("~") / "manykernels_data"
    return Path(data_home).expanduser()


def found_or_downloaded(
    file: File, folder: Path, *, download_if_missing: bool, timeout: float = TIMEOUT
) -> Path:
    """Return the path of a file in `folder`, and download it if it does not exist.

    Raises OSError, with the URL and the path in its message, if the download fails.
    """
    path = folder / file.path
    if path.is_file():
        return path
    if not download_if_missing:
        raise OSError(_missing_message(file, path, "download_if_missing is False"))
    if urlsplit(file.url).scheme not in ("http", "https"):
        raise ValueError(f"Only http and https URLs are downloaded; got {file.url}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _Web().open(file.url, timeout=timeout) as response:
            _save(file, path, response)
    except _ChecksumError:
        raise
    # HTTPException: invalid response or closed connection. OSError: other errors and timeouts.
    except (HTTPException, OSError) as error:
        raise OSError(_missing_message(file, path, _reason(error))) from error
    return path


class _ChecksumError(OSError):
    """Raised if a complete download has another checksum than expected."""


def _save(file: File, path: Path, response: Any) -> None:
    """Write a response to `path`, if it is complete and has the expected checksum."""
    with replacing(path, file.n_bytes or 0) as target:
        announced = response.headers.get("Content-Length")
        n_bytes, checksum = _copied(response, target, file.n_bytes or _MOST)
        # http.client does not raise if the connection breaks.
        if announced is not None and n_bytes < int(announced):
            raise OSError(f"the connection broke after {n_bytes} of {announced} bytes")
        if file.sha256 is not None and checksum != file.sha256:
            raise _ChecksumError(
                f"The file downloaded from {file.url} is not the expected one: its SHA-256 is "
                f"{checksum} and should be {file.sha256}. It was not kept. If you trust it, save "
                f"it as {path}: existing files are not checked."
            )
    if file.sha256 is None:
        warnings.warn(
            f"{file.url} was saved as {path} without a check, since its checksum is not known. "
            f"Its SHA-256 is {checksum}.",
            UserWarning,
            stacklevel=4,
        )


def _copied(response: IO[bytes], target: IO[bytes], most: int) -> tuple[int, str]:
    """Copy a response of at most `most` bytes; return its size and SHA-256."""
    digest = hashlib.sha256()
    n_bytes = 0
    while chunk := response.read(_CHUNK):
        digest.update(chunk)
        n_bytes += len(chunk)
        if n_bytes > most:
            raise OSError(f"the server sends more than the {most} bytes that are expected")
        target.write(chunk)
    return n_bytes, digest.hexdigest()


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        error.close()  # closes the connection
        return f"the server responded {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__


def _missing_message(file: File, path: Path, reason: str) -> str:
    return (
        f"{path.name} is not in {path.parent} and was not downloaded from {file.url} ({reason}). "
        f"Save it as {path}, or set data_home or {VARIABLE} to a folder that has {file.path}."
    )


# -- Sources of public data sets ------------------------------------------------------------------
#
# ``registry.txt`` has the known checksums. If they are those of a copy, the URL is that of the
# copy, at a fixed version if it has versions. `mfeat`, `satimage` and `concrete` have the URL of
# the repository and checksums of copies: if a copy differs from the original, the download is
# refused. The URLs have not been tested.


_UCI = "UCI Machine Learning Repository"
_PAGE = "https://archive.ics.uci.edu/dataset"
_UCI_FILES = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_BROWNLEE = (
    "https://raw.githubusercontent.com/jbrownlee/Datasets/a8229c90a131a53c58be9027e047e6a74f11a264"
)
_OPENML = (
    "https://raw.githubusercontent.com/datasets/openml-datasets/"
    "1e58ec568e0c1ad07909bc0f967a1fd3f5a9e5b3/data"
)
_PENDIGITS = "https://raw.githubusercontent.com/bschlief/pendigits/master/pendigits"


@dataclass(frozen=True)
class Source:
    """A data set: its title, page, description, shape, parser and files.

    `n_rows` and `columns` are those of the published files; a data set of several views has the
    number of columns of each view.
    """

    title: str
    page: str
    about: str
    n_rows: int
    columns: int | dict[str, int]
    parser: Callable[..., Parsed]
    files: tuple[File, ...]

    @property
    def description(self) -> str:
        """Text of the attribute DESCR of a data set."""
        checked = all(file.sha256 is not None for file in self.files)
        return "\n".join(
            [
                f"{self.title}\n\n{self.about}\n\nPage: {self.page}",
                *(f"File: {file.path}, from {file.url}" for file in self.files),
                f"Downloads are {'compared with' if checked else 'NOT compared with'} checksums.",
            ]
        )


def _read_registry() -> dict[str, tuple[str, int]]:
    """Return the SHA-256 and the size of files whose checksums are known, by their paths."""
    text = files(__package__).joinpath("registry.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {path: (sha256, int(n_bytes)) for path, n_bytes, sha256 in lines}


_REGISTRY = _read_registry()


def _file(path: str, url: str) -> File:
    return File(path, url, *_REGISTRY.get(path, ()))


SOURCES = {
    "sonar": Source(
        f"{_UCI}: Connectionist Bench (Sonar, Mines vs. Rocks)",
        f"{_PAGE}/151 (there called sonar.all-data)",
        "208 sonar echoes in 60 frequency bands: rock (R) or metal cylinder (M).\n"
        "Ye, Ji and Chen (2008), Tables 2 and 4.",
        208,
        60,
        labelled_rows,
        (_file("sonar/sonar.csv", f"{_BROWNLEE}/sonar.csv"),),
    ),
    "ionosphere": Source(
        f"{_UCI}: Ionosphere",
        f"{_PAGE}/52 (there called ionosphere.data)",
        "351 radar returns, 17 complex numbers each: good (g) if they show structure, or bad\n"
        "(b).\n"
        "Ye, Ji and Chen (2008), Tables 2 and 4.",
        351,
        34,
        labelled_rows,
        (_file("ionosphere/ionosphere.csv", f"{_BROWNLEE}/ionosphere.csv"),),
    ),
    "satimage": Source(
        f"{_UCI}: Statlog (Landsat Satellite)",
        f"{_PAGE}/146 (there called sat.trn, sat.tst)",
        "6435 neighbourhoods of 3 × 3 pixels in four spectral bands, six kinds of ground: 1, 2,\n"
        "3, 4, 5 and 7. The first 4435 rows are the training part. The providers ask that the\n"
        "parts be kept apart and no cross-validation run over them together: neighbourhoods\n"
        "overlap.\n"
        "Ye, Ji and Chen (2008), Tables 10 to 12.",
        6435,
        36,
        numbered_rows,
        (
            _file("satimage/sat.trn.txt", f"{_UCI_FILES}/statlog/satimage/sat.trn"),
            _file("satimage/sat.tst.txt", f"{_UCI_FILES}/statlog/satimage/sat.tst"),
        ),
    ),
    "mfeat": Source(
        f"{_UCI}: Multiple Features",
        f"{_PAGE}/72 (there called mfeat-fac, mfeat-fou, ...)\n"
        "  The two .openml.csv files are the same data from OpenML: mfeat-karhunen,\n"
        "  mfeat-zernike, saved as CSV with a header line and the class last.",
        "2000 handwritten numerals in six views, 200 per digit, in the order of the digits.\n"
        "Gönen and Alpaydın (2013), Tables 1 to 3.",
        2000,
        {"fac": 216, "fou": 76, "mor": 6, "pix": 240, "kar": 64, "zer": 47},
        mfeat,
        (
            _file("mfeat/mfeat-fac.txt", f"{_UCI_FILES}/mfeat/mfeat-fac"),
            _file("mfeat/mfeat-fou.txt", f"{_UCI_FILES}/mfeat/mfeat-fou"),
            _file("mfeat/mfeat-mor.txt", f"{_UCI_FILES}/mfeat/mfeat-mor"),
            _file("mfeat/mfeat-pix.txt", f"{_UCI_FILES}/mfeat/mfeat-pix"),
            _file("mfeat/mfeat-kar.openml.csv", f"{_OPENML}/mfeat-karhunen/mfeat-karhunen.csv"),
            _file("mfeat/mfeat-zer.openml.csv", f"{_OPENML}/mfeat-zernike/mfeat-zernike.csv"),
        ),
    ),
    "pendigits": Source(
        "Pen-based digits in four representations",
        "http://mkl.ucsd.edu/dataset/pendigits\n  (mirror: https://github.com/bschlief/pendigits)",
        "10992 digits written with a pen, in four views: points along the stroke (dyn) and\n"
        "pictures of 4 × 4, 8 × 8 and 16 × 16 pixels. The first 7494 rows are the training part.\n"
        "The targets are 1 to 10, where 10 is the digit 0.",
        10992,
        {"dyn": 16, "sta4": 16, "sta8": 64, "sta16": 256},
        pendigits,
        tuple(
            _file(f"pendigits4v/pendigits_{table}_{part}.csv", f"{_PENDIGITS}_{table}_{part}.csv")
            for table in ("dyn", "sta4", "sta8", "sta16", "label")
            for part in ("train", "test")
        ),
    ),
    "concrete": Source(
        f"{_UCI}: Concrete Compressive Strength",
        f"{_PAGE}/165",
        "1030 samples of concrete: what is in it, its age in days, and its strength in MPa.\n"
        "Gönen and Alpaydın (2013), Tables 8 and 9.",
        1030,
        8,
        concrete,
        (
            _file(
                "concrete/Concrete_Data.xls",
                f"{_UCI_FILES}/concrete/compressive/Concrete_Data.xls",
            ),
        ),
    ),
    # The checksums of the data sets below are unknown.
    "heart": Source(
        f"{_UCI}: Statlog (Heart)",
        f"{_PAGE}/145 (there called heart.dat)",
        "270 patients, 13 measurements: without (1) or with (2) a disease of the heart.\n"
        "Ye, Ji and Chen (2008), Table 3.",
        270,
        13,
        numbered_rows,
        (_file("heart/heart.dat", f"{_UCI_FILES}/statlog/heart/heart.dat"),),
    ),
    "segment": Source(
        f"{_UCI}: Statlog (Image Segmentation)",
        f"{_PAGE}/147 (there called segment.dat)",
        "2310 regions of 3 × 3 pixels of outdoor pictures, seven kinds, 1 to 7.\n"
        "Ye, Ji and Chen (2008), Tables 13 and 14.",
        2310,
        19,
        numbered_rows,
        (_file("segment/segment.dat", f"{_UCI_FILES}/statlog/segment/segment.dat"),),
    ),
    "white_wine": Source(
        f"{_UCI}: Wine Quality",
        f"{_PAGE}/186 (there called winequality-white.csv)",
        "4898 white wines, 11 chemical measurements, and a grade of their quality.\n"
        "Gönen and Alpaydın (2013), Tables 10 and 11.",
        4898,
        11,
        wine_quality,
        (
            _file(
                "white_wine/winequality-white.csv",
                f"{_UCI_FILES}/wine-quality/winequality-white.csv",
            ),
        ),
    ),
}


def fetch_dataset(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load a public data set of the papers, and download it if necessary.

    ============== ========================================== ==================== ========
    name           data                                       target               checksum
    ============== ========================================== ==================== ========
    "sonar"        208 × 60                                   R, M                 yes
    "ionosphere"   351 × 34                                   g, b                 yes
    "satimage"     6435 × 36, the first 4435 for training     1, 2, 3, 4, 5, 7     yes
    "mfeat"        2000, six views                            digits, 0 to 9       yes
    "pendigits"    10992, four views, 7494 for training       1 to 10 (10 is 0)    yes
    "concrete"     1030 × 8                                   strength             yes
    "heart"        270 × 13                                   1, 2                 no
    "segment"      2310 × 19                                  1 to 7               no
    "white_wine"   4898 × 11                                  grade                no
    ============== ========================================== ==================== ========

    Wine, breast cancer and the Olivetti faces are in :mod:`sklearn.datasets`.

    Parameters
    ----------
    name : str
        A name of the table above.
    data_home : str or path, optional
        Folder with a subfolder for each data set. By default the folder in the environment
        variable ``MANYKERNELS_DATA``, or else ``~/manykernels_data``. Existing files are not
        checked, so a folder can be copied to a machine without internet access.
    download_if_missing : bool, default=True
        Whether to download missing files. If False, a missing file raises OSError.
    return_X_y : bool, default=False
        Whether to return data and target only.

    Returns
    -------
    dataset : Bunch
        Has the attributes `data`, an array or :class:`~manykernels.Views`; `target`, an array;
        `DESCR`, a description with the sources; and `filenames`. With `return_X_y`, data and
        target are returned.

    Raises
    ------
    OSError
        If a file is missing and cannot be downloaded, or has another checksum than expected. The
        message has the URL, and the path to save the file as.

    Warns
    -----
    UserWarning
        If a file without a known checksum ("no" above) was downloaded: only its shape is checked.

    Notes
    -----
    URLs may change. Those of this version have not been tested, and the checksums of mfeat,
    satimage and concrete are those of copies; a file that differs is refused.

    "concrete" is an Excel file, which needs ``pip install "manykernels[cli]"``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from manykernels.datasets import fetch_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "sonar", "sonar.csv")  # not the real file
    ...     path.parent.mkdir()
    ...     _ = path.write_text(("0.5," * 60 + "M\\n") * 208)
    ...     X, y = fetch_dataset("sonar", data_home=folder, return_X_y=True)
    >>> X.shape, y.shape
    ((208, 60), (208,))
    """
    if name not in SOURCES:
        names = ", ".join(map(repr, SOURCES))
        raise ValueError(f"There is no data set named {name!r}; choose one of {names}.")
    source = SOURCES[name]
    folder = data_folder(data_home)
    paths = [
        found_or_downloaded(file, folder, download_if_missing=download_if_missing)
        for file in source.files
    ]
    listed = ", ".join(map(str, paths))
    try:
        data, target = source.parser(*paths)
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"{name!r} cannot be read from {listed}: {error}") from error
    _check_shape(name, source, data, target, listed)
    if isinstance(data, dict):
        data = Views(data)
    if return_X_y:
        return data, target
    return Bunch(
        data=data, target=target, DESCR=source.description, filenames=[str(path) for path in paths]
    )


def _check_shape(name: str, source: Source, data: Any, target: np.ndarray, listed: str) -> None:
    """Raise if the shapes are not those of the published data."""
    if isinstance(data, dict):
        shape: Any = {view: table.shape for view, table in data.items()}
        assert isinstance(source.columns, dict)
        expected: Any = {view: (source.n_rows, n) for view, n in source.columns.items()}
    else:
        shape, expected = data.shape, (source.n_rows, source.columns)
    if shape != expected or target.shape != (source.n_rows,):
        raise ValueError(
            f"{name!r} has the shape {shape} and {len(target)} targets in {listed}; the published "
            f"data have {expected} and {source.n_rows}. Remove these files to download them again."
        )

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
# If the checksums of a data set are those of a copy, the URL is that of the copy, at a fixed
# version if it has versions. `mfeat`, `satimage` and `concrete` have the URL of the repository and
# checksums of copies: if a copy differs from the original, the download is refused. The URLs have
# not been tested.


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
_PENDIGITS = "https://raw.githubusercontent.com/bschlief/pendigits/master"


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


def _pendigits_file(part: str, sha256: str, n_bytes: int) -> File:
    name = f"pendigits_{part}.csv"
    return File(f"pendigits4v/{name}", f"{_PENDIGITS}/{name}", sha256, n_bytes)


SOURCES = {
    "sonar": Source(
        f"{_UCI}: Connectionist Bench (Sonar, Mines vs. Rocks)",
        f"{_PAGE}/151 (there called sonar.all-data)",
        "208 sonar echoes in 60 frequency bands: rock (R) or metal cylinder (M).\n"
        "Ye, Ji and Chen (2008), Tables 2 and 4.",
        208,
        60,
        labelled_rows,
        (
            File(
                "sonar/sonar.csv",
                f"{_BROWNLEE}/sonar.csv",
                "3079c09b5d2789a0f96aff82c28e5164fafe2495c5f8da96c6c256c1bd25763f",
                87775,
            ),
        ),
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
        (
            File(
                "ionosphere/ionosphere.csv",
                f"{_BROWNLEE}/ionosphere.csv",
                "fd6dd7864b55d56dac0a1e6e24af9ccc35bf2555ac79af8ab9f3d1daa065ab83",
                76466,
            ),
        ),
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
            File(
                "satimage/sat.trn.txt",
                f"{_UCI_FILES}/statlog/satimage/sat.trn",
                "e896dc88a960fa2404160fc4c3cb3dc53fcf4afd80ba920bf2d261bd42d12613",
                525830,
            ),
            File(
                "satimage/sat.tst.txt",
                f"{_UCI_FILES}/statlog/satimage/sat.tst",
                "4b9167b8a92baafafed7c8809aef86d0683a5e685c19d98d119fa6974f0f2479",
                236745,
            ),
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
            File(
                "mfeat/mfeat-fac.txt",
                f"{_UCI_FILES}/mfeat/mfeat-fac",
                "83be9bc9fd50c6dd0b0532f6b6101956f1cf51c71b33f22d3f0cd2b5befb31b5",
                2162000,
            ),
            File(
                "mfeat/mfeat-fou.txt",
                f"{_UCI_FILES}/mfeat/mfeat-fou",
                "d2bed48a4d302efe77bd80d52e16a211e99efe6fee9baf1c28dcc199c43c50ad",
                1826000,
            ),
            File(
                "mfeat/mfeat-mor.txt",
                f"{_UCI_FILES}/mfeat/mfeat-mor",
                "8767b326d874f096de06d525a2df4e610f4e9dfe91e29c250d8a3054907e3b61",
                182000,
            ),
            File(
                "mfeat/mfeat-pix.txt",
                f"{_UCI_FILES}/mfeat/mfeat-pix",
                "70a1cd033add46614464a8740ddc23c3693765985bde52ccb6b702bff23b64f1",
                1442000,
            ),
            File(
                "mfeat/mfeat-kar.openml.csv",
                f"{_OPENML}/mfeat-karhunen/mfeat-karhunen.csv",
                "5220abfad7fc0dd40d21220fb134d34ddd090a88abc2f7d60ea261c4d9bd6755",
                1476884,
            ),
            File(
                "mfeat/mfeat-zer.openml.csv",
                f"{_OPENML}/mfeat-zernike/mfeat-zernike.csv",
                "80b36c9429ed89cfb23a0dd2f7b1b6e937ae11fc7b906c954c8817210c1cc401",
                1132554,
            ),
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
        (
            _pendigits_file(
                "dyn_train",
                "b778bdc57a2542c84996c54cf43139c6a652aa97dd1b5015ce89d40caea90a28",
                352904,
            ),
            _pendigits_file(
                "dyn_test",
                "5f4e6fed0c6db84ba517afdf1dbef62849c0c8a4e99bfbb5212d3f4f81673730",
                164735,
            ),
            _pendigits_file(
                "sta4_train",
                "fd9bf8898071603787414eb02c104de30a7ced0176b6d64029e2dbde738bd92e",
                240001,
            ),
            _pendigits_file(
                "sta4_test",
                "825d880d83c45bd7ce2eb7593d5bdea9a9bc3487e277e708fe3304315c45845a",
                112016,
            ),
            _pendigits_file(
                "sta8_train",
                "4c4ab2eea74feed5193b904b50a9cc7bcdb7c50eb83985e966dac1bcdb699be2",
                959232,
            ),
            _pendigits_file(
                "sta8_test",
                "ef7c782451297521fbfac6aa023f43e509631cf8c692d493033ac05f5b42cef4",
                447744,
            ),
            _pendigits_file(
                "sta16_train",
                "1c2fed18b3c63df2be1c391a82f2041f5ccf3603c4cee8beeb8303c8f5283dc1",
                3836928,
            ),
            _pendigits_file(
                "sta16_test",
                "b0dd63ccb284c6f115f6c2f8f591d3b30790a337743aa6ae343d3a123d4caf71",
                1790976,
            ),
            _pendigits_file(
                "label_train",
                "6a94a2ab1cb33a0579f689ef27a36a38846bc3fde87df1a23ccb6ffad6414048",
                15768,
            ),
            _pendigits_file(
                "label_test",
                "1916b7252565f84c459045397077c3fd492d52e467afc1831f3d01356360b10e",
                7359,
            ),
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
            File(
                "concrete/Concrete_Data.xls",
                f"{_UCI_FILES}/concrete/compressive/Concrete_Data.xls",
                "710076c66b9ca3f8050e7942f3dcbdbe04013534daeb0077ffd3079a52d8e0c4",
                124928,
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
        (File("heart/heart.dat", f"{_UCI_FILES}/statlog/heart/heart.dat"),),
    ),
    "segment": Source(
        f"{_UCI}: Statlog (Image Segmentation)",
        f"{_PAGE}/147 (there called segment.dat)",
        "2310 regions of 3 × 3 pixels of outdoor pictures, seven kinds, 1 to 7.\n"
        "Ye, Ji and Chen (2008), Tables 13 and 14.",
        2310,
        19,
        numbered_rows,
        (File("segment/segment.dat", f"{_UCI_FILES}/statlog/segment/segment.dat"),),
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
            File(
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

"""Readers of tables, sequences and kernel matrices, selected by the suffix of the file.

No code in a file is executed. Files that would unpack to far more than their size are refused
before they are unpacked.
"""

import codecs
import csv
import gzip
import io
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from ..datasets import read_fasta
from ..kernels.views import named_tables
from ..persistence.archive import check_array
from ..utils.files import GIB
from ..utils.numerics import available_memory
from .console import DataError, listed, note, sentence

# -- MAT files, versions 5 to 7 -------------------------------------------------------------------
#
# SciPy reads them too, but a damaged file can end the process there. This reader supports full
# matrices of real numbers, texts and cells of these, and checks every length before it is used.
#
# A file is a header of 128 bytes and *elements*: a tag with type and length, then the content,
# padded to a multiple of eight bytes. A matrix is an element of elements: flags, sizes, name,
# values. A compressed element contains another one.


# Length of the header, and the position of the version and the byte order in it.
_HEADER, _VERSION = 128, 124
# Element types of numbers.
_NUMBERS = {
    **{1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4"},
    **{7: "f4", 9: "f8", 12: "i8", 13: "u8"},
}
# Element types of text, with the encoding; numbers up to two bytes represent text as well.
_TEXTS = {16: "utf-8", 17: "utf-16", 18: "utf-32"}
_MATRIX, _PACKED = 14, 15
# Classes of matrices.
_CELL, _CHAR = 1, 4
_FULL = frozenset(range(6, 16))
# Flag of complex numbers.
_COMPLEX = 0x0800
# Largest depth of nested cells.
_DEPTH = 2


def read_mat5(path: Path, most: int) -> dict[str, Any]:
    """Return the variables by name: arrays, or lists of texts or arrays.

    Raises if a compressed variable unpacks to more than `most` bytes.
    """
    content = path.read_bytes()
    order = {b"IM": "<", b"MI": ">"}.get(content[_VERSION + 2 : _HEADER])
    if order is None:
        raise ValueError("it is not a MAT file of version 5 to 7.3")
    variables: dict[str, Any] = {}
    for kind, data in _Elements(order, content[_HEADER:]):
        if kind == _PACKED:
            data = _unpacked_element(data, most)
            kind, data = next(iter(_Elements(order, data)), (0, b""))
        if kind == _MATRIX:
            name, value = _matrix(order, data, _DEPTH)
            variables[name] = value
    return variables


@dataclass(frozen=True)
class _Elements:
    """Iterator over the elements in `data`."""

    order: str
    data: bytes

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        start = 0
        while start < len(self.data):
            kind, length, begin = self._tag(start)
            end = begin + length
            if length < 0 or end > len(self.data):
                raise ValueError("it ends too early, or is damaged")
            yield kind, self.data[begin:end]
            # Short elements have tag and content in eight bytes; compressed ones have no padding.
            short = begin == start + 4
            start = start + 8 if short else end if kind == _PACKED else end + -end % 8

    def _tag(self, start: int) -> tuple[int, int, int]:
        """Return the type, the length and the beginning of the content."""
        if start + 8 > len(self.data):
            raise ValueError("it ends too early, or is damaged")
        kind, length = np.frombuffer(self.data, f"{self.order}u4", 2, start).tolist()
        if kind >> 16:
            if kind >> 16 > 4:
                raise ValueError("it is damaged")
            return kind & 0xFFFF, kind >> 16, start + 4
        return kind, length, start + 8


def _unpacked_element(data: bytes, most: int) -> bytes:
    packed = zlib.decompressobj()
    try:
        content = packed.decompress(data, most)
    except zlib.error as error:
        raise ValueError("it is damaged") from error
    if packed.unconsumed_tail:
        raise ValueError("it unpacks to far more than its size")
    return content


def _matrix(order: str, data: bytes, depth: int) -> tuple[str, Any]:
    """Return the name and value of a matrix."""
    parts = list(_Elements(order, data))
    if len(parts) < 3 or len(parts[0][1]) < 4:
        raise ValueError("it is damaged")
    flags = int(np.frombuffer(parts[0][1], f"{order}u4", 1)[0])
    shape = tuple(np.frombuffer(parts[1][1], f"{order}i4").tolist())
    name, values, kind = parts[2][1].decode("ascii"), parts[3:], flags & 0xFF
    if len(shape) < 2 or min(shape) < 0:
        raise ValueError(f"its variable {name!r} has no shape")
    if kind == _CELL and depth and all(element == _MATRIX for element, _ in values):
        return name, _cell([_matrix(order, cell, depth - 1)[1] for _, cell in values], name)
    if kind not in (_CHAR, *_FULL) or flags & _COMPLEX or len(values) != 1:
        raise _no_matrix(name)
    return name, _texts(order, *values[0], shape) if kind == _CHAR else _numbers(
        order, *values[0], shape
    )


def _numbers(order: str, kind: int, data: bytes, shape: tuple[int, ...]) -> np.ndarray:
    dtype = np.dtype(f"{order}{_NUMBERS[kind]}") if kind in _NUMBERS else None
    if dtype is None or prod(shape) * dtype.itemsize != len(data):
        raise ValueError("a matrix in it does not have the length of its header")
    array = np.frombuffer(data, dtype).reshape(shape, order="F")
    return array.astype(dtype.newbyteorder("="))


def _texts(order: str, kind: int, data: bytes, shape: tuple[int, ...]) -> list[str]:
    """Return the rows of a character matrix."""
    if kind in _TEXTS:
        wide = kind != 16
        text = data.decode(_TEXTS[kind] + ({"<": "-le", ">": "-be"}[order] if wide else ""))
        letters = np.array(list(text), dtype=str)
    else:
        codes = _numbers(order, kind, data, (1, prod(shape))).ravel()
        letters = np.array([chr(int(code)) for code in codes if 0 <= code < 0x110000], dtype=str)
    if len(letters) != prod(shape) or len(shape) != 2:
        raise ValueError("a text in it does not have the length of its header")
    return ["".join(row).rstrip() for row in letters.reshape(shape, order="F")]


def _cell(values: list[Any], name: str) -> list[Any]:
    """Return the texts or arrays of a cell; a cell in it may have a single text."""
    if all(isinstance(value, np.ndarray) for value in values):
        return values
    if not all(isinstance(value, list) and len(value) < 2 for value in values):
        raise ValueError(f"its variable {name!r} is a cell of other things than texts or matrices")
    texts = [value[0] if value else "" for value in values]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"its variable {name!r} is a cell of other things than texts or matrices")
    return texts


# -- MAT files, version 7.3 -----------------------------------------------------------------------
#
# These are HDF5 files, in which the order of axes is reversed. Their attribute MATLAB_class tells
# what a variable is.


def read_mat73(path: Path, most: int) -> dict[str, Any]:
    """Return the variables by name: arrays, or lists of texts or arrays.

    Raises if the variables unpack to more than `most` bytes.
    """
    try:
        import h5py
    except ImportError as error:
        raise DataError(
            f"{str(path)!r} is a MAT file of version 7.3, which needs h5py: pip install h5py; or "
            "save it with -v7, as in save('kernels.mat', '-v7')."
        ) from error
    variables: dict[str, Any] = {}
    with h5py.File(path, "r") as file:
        for name in file:
            if name.startswith("#"):  # what cells refer to
                continue
            linked = isinstance(file.get(name, getlink=True), h5py.HardLink)
            if not linked or not isinstance(file[name], h5py.Dataset):
                raise _no_matrix(name)
            cells = _hdf5_cells(file, file[name])
            most -= file[name].nbytes + sum(cell.nbytes for cell in cells)
            if most < 0:
                raise ValueError("it unpacks to far more than its size")
            variables[name] = _hdf5_value(file, file[name], name)
    return variables


def _hdf5_cells(file: Any, data: Any) -> list[Any]:
    """Return the contents of a cell; nothing of other variables."""
    if data.attrs.get("MATLAB_class") != b"cell" or not data.dtype.hasobject:
        return []
    return [file[reference] for reference in data[()].ravel()]


def _hdf5_value(file: Any, data: Any, name: str) -> Any:
    """Return an array, the texts of a character matrix, or the contents of a cell."""
    kind = data.attrs.get("MATLAB_class", b"double").decode()
    if data.external or data.is_virtual or data.attrs.get("MATLAB_sparse") is not None:
        raise _no_matrix(name)
    if kind == "cell" and data.dtype.hasobject:
        cells = _hdf5_cells(file, data)
        if any(cell.attrs.get("MATLAB_class") == b"cell" for cell in cells):
            raise ValueError(f"its variable {name!r} is a cell of cells")
        return _cell([_hdf5_value(file, cell, name) for cell in cells], name)
    if data.dtype.kind not in "biuf":
        raise _no_matrix(name)
    array = data[()].T
    if kind != "char":
        return array
    if "MATLAB_empty" in data.attrs:
        return []
    return ["".join(map(chr, row)).rstrip() for row in np.atleast_2d(array).tolist()]


def _no_matrix(name: str) -> ValueError:
    return ValueError(
        f"its variable {name!r} is neither a full matrix of real numbers nor a cell of texts or "
        "such matrices"
    )


# -- Kernel matrices in .npy, .npz and .mat files -------------------------------------------------
#
# Two-dimensional arrays are kernels, three-dimensional arrays several of them; one-dimensional
# arrays are columns about the samples, such as labels and the target.


def size_of_npz(path: Path) -> int:
    """Return the unpacked size of an archive in bytes, according to its directory."""
    with zipfile.ZipFile(path) as archive:
        return sum(info.file_size for info in archive.infolist())


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays by name, without unpickling."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            content = archive.read(info)
            check_array(content, name)
            arrays[name] = np.load(io.BytesIO(content), allow_pickle=False)
    return arrays


def read_mat(path: Path, most: int, n_columns: int | None = None) -> dict[str, np.ndarray]:
    """Return the variables by name; vectors, matrices in MATLAB, are one-dimensional.

    A cell of matrices is several variables, a cell of single numbers a vector. If a file has
    vectors only, numbers in a row of `n_columns` are the kernel of one new sample.
    """
    with path.open("rb") as file:
        is_hdf5 = file.read(10) == b"MATLAB 7.3"
    values = read_mat73(path, most) if is_hdf5 else read_mat5(path, most)
    variables: dict[str, np.ndarray] = {}
    for name, value in values.items():
        arrays = {name: value}
        if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            if all(array.size == 1 for array in value):
                arrays = {name: [array.item() for array in value]}
            else:
                arrays = {f"{name}_{j}": array for j, array in enumerate(value)}
        if twice := sorted(variables.keys() & arrays.keys()):
            raise ValueError(f"several kernels are called {twice[0]!r}")
        variables |= {name: np.asarray(value) for name, value in arrays.items()}
    vectors = {name for name, array in variables.items() if array.ndim < 3 and 1 in array.shape}
    if not any(array.ndim > 1 for name, array in variables.items() if name not in vectors):
        vectors -= {
            name
            for name in vectors
            if variables[name].shape == (1, n_columns) and variables[name].dtype.kind in "biuf"
        }
    return {name: array.ravel() if name in vectors else array for name, array in variables.items()}


def divided(array: np.ndarray, name: str, n_columns: int | None = None) -> dict[str, np.ndarray]:
    """Return the kernels of a three-dimensional array, of which the first or last axis counts.

    `n_columns` is the number of columns of a kernel; None if kernels are square.
    """
    first = array.shape[2] == (array.shape[1] if n_columns is None else n_columns)
    last = array.shape[1] == (array.shape[0] if n_columns is None else n_columns)
    if first and last and n_columns is None and not np.array_equal(array, array.swapaxes(1, 2)):
        first = False  # as many kernels as samples, and those along the first axis are asymmetric
    if not (first or last):
        raise ValueError(
            f"its array {name!r} has the shape {array.shape}, but must be (kernels, rows, "
            "columns) or (rows, columns, kernels)"
            + (", with square kernels" if n_columns is None else f", with {n_columns} columns")
        )
    kernels = array if first else np.moveaxis(array, 2, 0)
    return {f"{name}_{j}": np.ascontiguousarray(kernel) for j, kernel in enumerate(kernels)}


def sorted_arrays(
    arrays: dict[str, np.ndarray], n_columns: int | None = None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return kernels, all of one shape, and columns with as many rows."""
    kernels: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if array.ndim not in (1, 2, 3):
            raise ValueError(f"its array {name!r} has {array.ndim} dimensions, not one to three")
        if array.ndim > 1:
            several = divided(array, name, n_columns) if array.ndim == 3 else {name: array}
            if twice := sorted(kernels.keys() & several.keys()):
                raise ValueError(f"several kernels are called {twice[0]!r}")
            kernels |= several
    columns = {name: array for name, array in arrays.items() if array.ndim == 1}
    if not kernels:
        raise ValueError("it has no kernel, that is, no array of two or three dimensions")
    first, *others = kernels.items()
    for name, kernel in kernels.items():
        if kernel.dtype.kind not in "biuf":
            raise ValueError(f"its array {name!r} does not contain numbers")
    for name, kernel in others:
        if kernel.shape != first[1].shape:
            raise ValueError(
                f"its kernels differ in size: {first[0]!r} is {first[1].shape}, {name!r} is "
                f"{kernel.shape}"
            )
    for name, column in columns.items():
        if len(column) != len(first[1]):
            raise ValueError(
                f"its array {name!r} has {len(column)} entries, its kernels {len(first[1])} rows"
                + (
                    ""
                    if n_columns is None
                    else " (new samples are rows, those of the fit columns)"
                )
            )
    columns = {
        name: column.astype(str) if column.dtype.kind in "SU" else column
        for name, column in columns.items()
    }
    return kernels, columns


# Bytes at the beginning of a file by which the separator and the decimal comma are detected.
_LOOKED_AT = 2**16
# Bytes of a number in memory.
_NUMBER = 8
# Bytes that are unpacked at once to measure the size of a file.
_PIECE = 2**22
# A file may unpack to this many bytes, or to this many times its size if that is more. Tables and
# kernels are compressed to a hundredth at best; a higher compression is an attack on the memory.
_MODEST = GIB
_MOST_PACKED = 100
# Suffixes of compressed text files.
_PACKERS = (".gz", ".zst")
# Control characters that text files do not have.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


@dataclass(frozen=True)
class Contents:
    """Contents of a file.

    Attributes
    ----------
    path : Path
    columns : DataFrame
        Columns about the samples, possibly with the target.
    labels : Index, optional
        Names of the samples, if the format has them.
    table : table or sequences, optional
        Input of the kernels; None if it is `columns`.
    matrices : dict of str to ndarray, optional
        Kernel matrices, if the file has them instead of a table.
    """

    path: Path
    columns: pd.DataFrame
    labels: pd.Index | None = None
    table: Any = None
    matrices: dict[str, np.ndarray] | None = None


def is_readable(path: Path) -> bool:
    """Return whether the suffix of a file is that of a supported format."""
    return _suffix(path) in READERS


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a file.

    Attributes
    ----------
    part : str, optional
        One of several tables in the file.
    texts : collection of str
        Columns that are read as text, such as the labels.
    encoding : str, optional
        Encoding of text files; by default it is detected.
    transpose : bool
        Whether a table has a column per sample: its first row has the names of the samples, its
        first column the names of the features.
    n_columns : int, optional
        Number of columns of kernels, if these are not square.
    """

    part: str | None = None
    texts: Collection[str] = ()
    encoding: str | None = None
    transpose: bool = False
    n_columns: int | None = None


def read(path: Path, options: ReadOptions = ReadOptions()) -> Contents:
    """Read a file."""
    reader = READERS.get(_suffix(path))
    if _is_pipe(path):
        raise DataError(
            f"{str(path)!r} is no file but a pipe or device, and files are read more than once: "
            "write the data into a file, such as data.csv."
        )
    if reader is None:
        raise DataError(
            f"The format of {str(path)!r} is not supported; supported are {', '.join(READERS)}."
        )
    if path.is_symlink() and not path.exists():
        raise DataError(f"{str(path)!r} is a symbolic link to a file that does not exist.")
    if not path.exists():
        raise DataError(f"There is no file {str(path)!r}.")
    if not path.is_file():
        raise DataError(f"{str(path)!r} is not a file.")
    if path.suffix.lower() in _PACKERS and reader not in (_separated, _fasta):
        raise DataError(f"{str(path)!r} is compressed: unpack it first.")
    if options.transpose and reader not in (_separated, _parquet, _excel):
        raise DataError(f"{str(path)!r} is not a table that --transpose could turn.")
    try:
        return reader(path, options)
    except DataError:
        raise
    except Exception as error:  # libraries raise many kinds of errors about damaged files
        reason = sentence(str(error)).rstrip(".") or type(error).__name__
        raise DataError(f"{str(path)!r} cannot be read: {reason}.") from error


def _is_pipe(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # no file, or a name that none can have
        return str(path) == "-"
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _suffix(path: Path) -> str:
    name = Path(path.name.lower())
    return Path(name.stem).suffix if name.suffix in _PACKERS else name.suffix


def _most_bytes(path: Path) -> int:
    """Return the largest number of bytes that a file may unpack to."""
    return max(_MODEST, _MOST_PACKED * path.stat().st_size)


def refuse_bomb(path: Path, n_bytes: int) -> None:
    """Raise if a file unpacks to far more than its size, as only decompression bombs do."""
    if n_bytes > _most_bytes(path):
        raise DataError(
            f"{str(path)!r} would unpack to {n_bytes / GIB:.3g} GiB, far more than its size, and "
            "is not read."
        )


def refuse_too_large(path: Path, n_bytes: int, reader: str) -> None:
    """Raise if a table needs more memory than available; `reader` is the function of Dask."""
    available = available_memory()
    if available is not None and n_bytes > available:
        raise DataError(
            f"{str(path)!r} takes {n_bytes / GIB:.3g} GiB in memory, but only "
            f"{available / GIB:.3g} GiB are available. In Python, estimators with an "
            f"approximation can learn from dask.dataframe.{reader}({str(path)!r}), which needs "
            'pip install "manykernels[dask]".'
        )


# -- tables ----------------------------------------------------------------------------------


def _opened(path: Path) -> IO[bytes]:
    """Open a file, unpacking it if it is compressed."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.open(path)  # type: ignore[return-value]
    if suffix != ".zst":
        return path.open("rb")
    try:
        import zstandard
    except ImportError as error:
        raise DataError(
            f"{str(path)!r} needs zstandard: pip install zstandard, or unpack the file first."
        ) from error
    return zstandard.open(path, "rb")


def _separated(path: Path, options: ReadOptions) -> Contents:
    """Read a text file with a line per sample, separated by commas, semicolons or tabs."""
    n_bytes = path.stat().st_size
    if path.suffix.lower() in _PACKERS:
        n_bytes = _unpacked(path)
        refuse_bomb(path, n_bytes)
    # A number has about as many characters as bytes in memory.
    refuse_too_large(path, n_bytes, "read_csv")
    with _opened(path) as file:
        start = file.read(_LOOKED_AT)
    encoding = options.encoding or _encoding(path, start)
    text = start.decode(encoding, errors="replace")
    if "\0" in text:
        raise ValueError("it is not text")
    if not text.strip():
        raise ValueError("it is empty")
    header = next(iter(text.splitlines()), "")
    separator = max(",;\t|", key=header.count)
    comma = separator == ";" and re.search(r"(^|;)-?\d+,\d", text, re.MULTILINE) is not None
    parser_options = {
        "sep": separator,
        "decimal": "," if comma else ".",
        "low_memory": False,
        "skipinitialspace": True,
    }
    try:
        with _opened(path) as file:
            first = {"sep": separator, "encoding": encoding}
            names = pd.read_csv(file, header=None, nrows=1, dtype=str, **first)
        names = names.iloc[0].fillna("")
        _refuse_duplicates([name.strip() for name in names])
        if options.transpose and "" in list(names[1:]):
            raise ValueError("its first row must have the name of a sample in every column")
        # Text keeps labels such as 007.
        dtype: Any = {name: str for name in names if name.strip() in options.texts}
        with _opened(path) as file:
            dtype = str if options.transpose else dtype
            frame = pd.read_csv(file, dtype=dtype, encoding=encoding, **parser_options)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"its text is not encoded as {encoding.removesuffix('-sig')}: pass its encoding as "
            "--encoding, such as --encoding cp1252"
        ) from error
    if not options.transpose:
        return Contents(path, _named_columns(frame))
    features, labels = _turned_names(frame)
    # Columns of numbers are recognised when the turned table is read as text.
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=separator)
    writer.writerow(features)
    writer.writerows(frame.iloc[:, 1:].to_numpy(dtype=object, na_value="").T)
    buffer.seek(0)
    types = {name: str for name in features if name in options.texts}
    frame = pd.read_csv(buffer, dtype=types, skip_blank_lines=False, **parser_options)
    return Contents(path, _named_columns(frame), labels)


def _encoding(path: Path, start: bytes) -> str:
    """Return the encoding of a text file: UTF-16, UTF-8, or else Latin-1."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Without a byte-order mark, every other byte of most letters is zero.
    halves = {"utf-16-le": (start[1::2], start[::2]), "utf-16-be": (start[::2], start[1::2])}
    for name, (zeros, letters) in halves.items():
        if 0 not in letters and 2 * zeros.count(0) > len(zeros):
            return name
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with _opened(path) as file:
            while piece := file.read(_PIECE):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        if _CONTROL.search(start):
            raise ValueError("it is not text") from None
        note(
            f"{str(path)!r} is not encoded as UTF-8 and is read as latin-1 (Western European). "
            "If letters are wrong, pass its encoding, such as --encoding cp1250."
        )
        return "latin-1"
    return "utf-8-sig"


def _turned_names(frame: pd.DataFrame) -> tuple[list[str], pd.Index]:
    """Return the names of features and of samples of a table with samples in columns."""
    first = frame.iloc[:, 0]
    if len(frame.columns) < 2:
        raise ValueError("it has no columns of samples besides the names of the features")
    if first.isna().any():
        row = int(np.flatnonzero(first.isna())[0]) + 1
        raise ValueError(f"its first column, with the names of features, is empty in row {row}")
    features = [str(name).strip() for name in first]
    _refuse_duplicates(features)
    return features, pd.Index([str(name).strip() for name in frame.columns[1:]])


def _excel(path: Path, options: ReadOptions) -> Contents:
    """Read the first sheet of an Excel file."""
    try:
        import openpyxl  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        raise DataError(
            f'{str(path)!r} needs openpyxl: pip install "manykernels[cli,excel]", or save the '
            "sheet as .csv."
        ) from error
    n_bytes = size_of_npz(path)
    refuse_bomb(path, n_bytes)
    refuse_too_large(path, n_bytes, "read_csv")
    with pd.ExcelFile(path, engine="openpyxl") as file:
        first, *others = file.sheet_names
        names = file.parse(first, header=None, nrows=1, dtype=str)
        if names.empty:
            raise ValueError(f"its first sheet, {first!r}, is empty")
        names = names.iloc[0].fillna("")
        _refuse_duplicates([name.strip() for name in names])
        dtype = {name: str for name in names if name.strip() in options.texts}
        frame = file.parse(first, dtype=dtype)
    if others:
        note(f"{str(path)!r} has several sheets: the first, {first!r}, is read.")
    for name in frame.columns:
        # Spreadsheets may store numbers as text, which are numbers in a file of text.
        present = frame[name].dropna()
        texts = present[present.map(lambda entry: isinstance(entry, str))]
        numbers = pd.to_numeric(texts, errors="coerce")
        if (
            len(texts)
            and numbers.notna().all()
            and pd.api.types.infer_dtype(present) in ("string", "mixed-integer", "mixed")
            and str(name).strip() not in options.texts
        ):
            frame[name] = pd.to_numeric(frame[name])
            note(f"{str(path)!r}: column {str(name)!r} has numbers stored as text.")
    return _of_types(path, frame, options)


def _of_types(path: Path, frame: pd.DataFrame, options: ReadOptions) -> Contents:
    """Return the contents of a table whose cells have types."""
    if not options.transpose:
        return Contents(path, _named_columns(frame))
    features, labels = _turned_names(frame)
    types = {name: str for name in features if name in options.texts}
    columns = frame.iloc[:, 1:].T.reset_index(drop=True).set_axis(features, axis=1)
    return Contents(path, _named_columns(columns.infer_objects().astype(types)), labels)


def _parquet(path: Path, options: ReadOptions) -> Contents:
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataError(
            f'{str(path)!r} needs pyarrow: pip install "manykernels[cli,parquet]", or save the '
            "table as .csv."
        ) from error
    metadata = pq.read_metadata(path)
    n_bytes = metadata.num_rows * max(metadata.num_columns, 1) * _NUMBER
    refuse_bomb(path, n_bytes)
    refuse_too_large(path, n_bytes, "read_parquet")
    frame = pd.read_parquet(path)
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    return _of_types(path, frame, options)


def _named_columns(frame: pd.DataFrame) -> pd.DataFrame:
    frame.columns = [str(name).strip() for name in frame.columns]
    _refuse_duplicates(list(frame.columns))
    if not len(frame) or not len(frame.columns):
        raise ValueError("it has no rows")
    return frame


def _refuse_duplicates(names: list[str]) -> None:
    """Raise if a column name occurs twice; pandas would rename one of the columns."""
    columns = pd.Index(names)
    duplicates = columns[columns.duplicated() & (columns != "")]
    if len(duplicates):
        raise ValueError(f"several columns are called {duplicates[0]!r}")


# -- sequences -------------------------------------------------------------------------------


def _fasta(path: Path, options: ReadOptions) -> Contents:
    if path.suffix.lower() == ".zst":
        raise ValueError("unpack it first, or compress it as .gz")
    if path.suffix.lower() == ".gz":
        refuse_bomb(path, _unpacked(path))
    records = read_fasta(path)
    labels = pd.Index(records.names)
    sequences = pd.Series(records.sequences, index=labels)
    return Contents(path, pd.DataFrame(index=labels), labels, sequences)


def _unpacked(path: Path) -> int:
    """Return the unpacked size of a file, or a number above the limit if it is larger."""
    most, length = _most_bytes(path), 0
    with _opened(path) as file:
        while length <= most and (piece := file.read(_PIECE)):
            length += len(piece)
    return length


# -- kernels ---------------------------------------------------------------------------------


def _npz(path: Path, options: ReadOptions) -> Contents:
    refuse_bomb(path, size_of_npz(path))
    return _of_arrays(path, read_npz(path), options)


def _npy(path: Path, options: ReadOptions) -> Contents:
    content = path.read_bytes()
    check_array(content, path.name)
    # The name is the same for training and new samples, whatever the names of their files.
    return _of_arrays(path, {"kernel": np.load(io.BytesIO(content), allow_pickle=False)}, options)


def _mat(path: Path, options: ReadOptions) -> Contents:
    return _of_arrays(path, read_mat(path, _most_bytes(path), options.n_columns), options)


def _of_arrays(path: Path, arrays: dict[str, np.ndarray], options: ReadOptions) -> Contents:
    kernels, columns = sorted_arrays(arrays, options.n_columns)
    return Contents(path, pd.DataFrame(columns), matrices=kernels)


# -- single cells ----------------------------------------------------------------------------


def _modality(path: Path, options: ReadOptions) -> Contents:
    """Read a modality of MuData, or a table of AnnData, with the columns of ``obs``."""
    try:
        if path.suffix.lower() == ".h5mu":
            import mudata as package
        else:
            import anndata as package  # type: ignore[no-redef]
    except ImportError as error:
        raise DataError(
            f'{str(path)!r} needs {error.name}: pip install "manykernels[cli,omics]".'
        ) from error
    if path.suffix.lower() == ".h5mu":
        # The columns of all modalities; whether they are read by themselves changes in 0.4.
        with package.set_options(pull_on_update=False):
            data = package.read_h5mu(path)
            data.pull_obs()
    else:
        data = package.read_h5ad(path)
    layers = [name for name in getattr(data, "layers", None) or () if name is not None]
    of_layer = options.part in layers and options.part not in data.obsm
    tables = named_tables(data, layer=options.part if of_layer else None)
    if options.part is None and len(tables) > 1 and "X" not in tables:
        raise DataError(
            f"{str(path)!r} has several tables: select one, as in "
            f"--view {next(iter(tables))}={path.name}:{next(iter(tables))}; "
            f"there are {listed(tables)}."
        )
    name = options.part or ("X" if "X" in tables else next(iter(tables)))
    if name not in tables:
        raise DataError(f"{str(path)!r} has no table {name!r}, only {listed([*tables, *layers])}.")
    labels = pd.Index([str(label) for label in tables[name].labels])
    columns = data.obs.set_axis([str(label) for label in data.obs_names]).reindex(labels)
    table: Any = tables[name].table
    if tables[name].columns is not None:  # of a sparse matrix, which has no names itself
        table = pd.DataFrame(table.toarray(), columns=list(tables[name].columns))
    return Contents(path, columns, labels, table)


#: Readers by file suffix.
READERS: dict[str, Callable[[Path, ReadOptions], Contents]] = {
    ".csv": _separated,
    ".tsv": _separated,
    ".txt": _separated,
    ".parquet": _parquet,
    ".xlsx": _excel,
    ".fasta": _fasta,
    ".fa": _fasta,
    ".faa": _fasta,
    ".fna": _fasta,
    ".npy": _npy,
    ".npz": _npz,
    ".mat": _mat,
    ".h5ad": _modality,
    ".h5mu": _modality,
}
#: Formats with several tables per file; a view selects one in place of columns.
WITH_PARTS = frozenset({".h5ad", ".h5mu"})

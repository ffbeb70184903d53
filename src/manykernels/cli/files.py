"""Readers of tables, sequences and kernel matrices, selected by the suffix of the file.

No code in a file is executed. Files that would unpack to far more than their size are refused
before they are unpacked.
"""

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..datasets import read_fasta
from ..kernels.views import named_tables
from ..persistence.archive import check_array
from ..utils.files import GIB
from ..utils.numerics import available_memory
from .console import DataError, listed, sentence

# -- MAT files, versions 5 to 7 -------------------------------------------------------------------
#
# SciPy reads them too, but a damaged file can end the process there. This reader supports full
# matrices of real numbers, texts and cells of texts, and checks every length before it is used.
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
    """Return the variables, arrays or lists of texts, by name.

    Raises if a compressed variable unpacks to more than `most` bytes.
    """
    content = path.read_bytes()
    if content.startswith(b"MATLAB 7.3"):
        raise ValueError(
            "MAT files of version 7.3 are not supported: save it with -v7, as in "
            "save('kernels.mat', '-v7')"
        )
    order = {b"IM": "<", b"MI": ">"}.get(content[_VERSION + 2 : _HEADER])
    if order is None:
        raise ValueError("it is not a MAT file of version 5 to 7")
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
        return name, [_text(_matrix(order, cell, depth - 1)[1], name) for _, cell in values]
    if kind not in (_CHAR, *_FULL) or flags & _COMPLEX or len(values) != 1:
        raise ValueError(
            f"its variable {name!r} is neither a full matrix of real numbers nor texts in a cell"
        )
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


def _text(value: object, name: str) -> str:
    """Return the single text of a cell."""
    if not isinstance(value, list) or len(value) > 1:
        raise ValueError(f"its variable {name!r} is a cell of other things than texts")
    return value[0] if value else ""


# -- Kernel matrices in .npz and .mat files -------------------------------------------------------
#
# Two-dimensional arrays are kernels; one-dimensional arrays are columns about the samples, such as
# labels and the target.


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


def read_mat(path: Path, most: int) -> dict[str, np.ndarray]:
    """Return the variables by name; vectors, matrices in MATLAB, are one-dimensional."""
    variables = {name: np.asarray(value) for name, value in read_mat5(path, most).items()}
    return {
        name: array.ravel() if array.ndim == 1 or 1 in array.shape else array
        for name, array in variables.items()
    }


def sorted_arrays(
    arrays: dict[str, np.ndarray],
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return kernels, all of one shape, and columns with as many rows."""
    kernels = {name: array for name, array in arrays.items() if array.ndim == 2}
    columns = {name: array for name, array in arrays.items() if array.ndim == 1}
    if not kernels:
        raise ValueError("it has no kernel, that is, no two-dimensional array")
    for name, array in arrays.items():
        if array.ndim not in (1, 2):
            raise ValueError(f"its array {name!r} has {array.ndim} dimensions, not one or two")
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


def read(path: Path, part: str | None = None, texts: Collection[str] = ()) -> Contents:
    """Read a file.

    `part` selects one of several tables in it. The columns `texts`, such as the labels, are read
    as text.
    """
    reader = READERS.get(_suffix(path))
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
    try:
        return reader(path, part, texts)
    except DataError:
        raise
    except Exception as error:  # libraries raise many kinds of errors about damaged files
        reason = sentence(str(error)).rstrip(".") or type(error).__name__
        raise DataError(f"{str(path)!r} cannot be read: {reason}.") from error


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return Path(name.removesuffix(".gz")).suffix if name.endswith(".gz") else path.suffix.lower()


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


def _separated(path: Path, part: str | None, texts: Collection[str]) -> Contents:
    """Read a text file with a line per sample, separated by commas, semicolons or tabs."""
    # A number has about as many characters as bytes in memory.
    refuse_too_large(path, path.stat().st_size, "read_csv")
    with path.open("rb") as file:
        start = file.read(_LOOKED_AT)
    if b"\0" in start:
        raise ValueError("it is not text")
    text = start.decode("utf-8", errors="replace")
    header = next(iter(text.splitlines()), "")
    separator = max(",;\t", key=header.count)
    comma = separator == ";" and re.search(r"(^|;)-?\d+,\d", text, re.MULTILINE) is not None
    options = {"sep": separator, "encoding": "utf-8-sig", "compression": None}
    names = pd.read_csv(path, header=None, nrows=1, dtype=str, **options).iloc[0].fillna("")
    _refuse_duplicates([name.strip() for name in names])
    frame = pd.read_csv(
        path,
        decimal="," if comma else ".",
        low_memory=False,
        skipinitialspace=True,
        # Keeps labels such as 007.
        dtype={name: str for name in names if name.strip() in texts},
        **options,
    )
    return Contents(path, _named_columns(frame))


def _parquet(path: Path, part: str | None, texts: Collection[str]) -> Contents:
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    n_bytes = metadata.num_rows * max(metadata.num_columns, 1) * _NUMBER
    refuse_bomb(path, n_bytes)
    refuse_too_large(path, n_bytes, "read_parquet")
    frame = pd.read_parquet(path)
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    return Contents(path, _named_columns(frame))


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


def _fasta(path: Path, part: str | None, texts: Collection[str]) -> Contents:
    if path.suffix.lower() == ".gz":
        refuse_bomb(path, _unpacked(path))
    records = read_fasta(path)
    labels = pd.Index(records.names)
    sequences = pd.Series(records.sequences, index=labels)
    return Contents(path, pd.DataFrame(index=labels), labels, sequences)


def _unpacked(path: Path) -> int:
    """Return the unpacked size of a file, or a number above the limit if it is larger."""
    most, length = _most_bytes(path), 0
    with gzip.open(path) as file:
        while length <= most and (piece := file.read(_PIECE)):
            length += len(piece)
    return length


# -- kernels ---------------------------------------------------------------------------------


def _npz(path: Path, part: str | None, texts: Collection[str]) -> Contents:
    refuse_bomb(path, size_of_npz(path))
    return _of_arrays(path, read_npz(path))


def _mat(path: Path, part: str | None, texts: Collection[str]) -> Contents:
    return _of_arrays(path, read_mat(path, _most_bytes(path)))


def _of_arrays(path: Path, arrays: dict[str, np.ndarray]) -> Contents:
    kernels, columns = sorted_arrays(arrays)
    return Contents(path, pd.DataFrame(columns), matrices=kernels)


# -- single cells ----------------------------------------------------------------------------


def _modality(path: Path, part: str | None, texts: Collection[str]) -> Contents:
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
    data = (package.read_h5mu if path.suffix.lower() == ".h5mu" else package.read_h5ad)(path)
    tables = named_tables(data)
    if part is None and len(tables) > 1 and "X" not in tables:
        raise DataError(
            f"{str(path)!r} has several tables: select one, as in "
            f"--view {next(iter(tables))}={path.name}:{next(iter(tables))}; "
            f"there are {listed(tables)}."
        )
    name = part or ("X" if "X" in tables else next(iter(tables)))
    if name not in tables:
        raise DataError(f"{str(path)!r} has no table {name!r}, only {listed(tables)}.")
    labels = pd.Index([str(label) for label in tables[name].labels])
    columns = data.obs.set_axis([str(label) for label in data.obs_names]).reindex(labels)
    table: Any = tables[name].table
    if tables[name].columns is not None:  # of a sparse matrix, which has no names itself
        table = pd.DataFrame(table.toarray(), columns=list(tables[name].columns))
    return Contents(path, columns, labels, table)


#: Readers by file suffix.
READERS: dict[str, Callable[[Path, str | None, Collection[str]], Contents]] = {
    ".csv": _separated,
    ".tsv": _separated,
    ".txt": _separated,
    ".parquet": _parquet,
    ".fasta": _fasta,
    ".fa": _fasta,
    ".faa": _fasta,
    ".fna": _fasta,
    ".npz": _npz,
    ".mat": _mat,
    ".h5ad": _modality,
    ".h5mu": _modality,
}
#: Formats with several tables per file; a view selects one in place of columns.
WITH_PARTS = frozenset({".h5ad", ".h5mu"})

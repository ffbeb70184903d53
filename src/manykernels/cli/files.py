"""Tables and sequences from files, by the ending of their names.

Nothing in a file is executed. What says that it unpacks to far more than it is long is refused
before it is unpacked.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._files import GIB
from .._memory import available_memory
from ..datasets import read_fasta
from ..kernels.modalities import named_tables
from . import matrices
from .errors import DataError, listed, sentence

# Bytes of a file in which its separator and its decimal comma are looked for.
_LOOKED_AT = 2**16
# Bytes of a number in memory.
_NUMBER = 8
# Bytes that are unpacked at once to see how long a file is.
_PIECE = 2**22
# A file may unpack to this many bytes, or to this many times its length if that is more. Tables
# and kernels are packed to a hundredth at best; what is packed to less is made to fill the memory.
_MODEST = GIB
_MOST_PACKED = 100


@dataclass(frozen=True)
class Contents:
    """What a file has about its samples.

    Attributes
    ----------
    path : Path
    columns : DataFrame
        A column or more about every sample, the target perhaps among them.
    labels : sequence of str, optional
        Names of the samples, if the format has them.
    table : table or sequences, optional
        What kernels compare; None if it is the columns.
    matrices : dict of str to ndarray, optional
        Kernel matrices, if the file has these in place of a table.
    """

    path: Path
    columns: pd.DataFrame
    labels: Any = None
    table: Any = None
    matrices: dict[str, np.ndarray] | None = None


def is_readable(path: Path) -> bool:
    """Whether the ending of a name is that of a format that is read."""
    return _suffix(path) in READERS


def read(path: Path, part: str | None = None, texts: Collection[str] = ()) -> Contents:
    """The contents of a file.

    `part` names one of several tables that it has, `texts` columns that are read as text whatever
    they hold, such as that with labels.
    """
    reader = READERS.get(_suffix(path))
    if reader is None:
        raise DataError(f"{str(path)!r} is of no known kind; known are {', '.join(READERS)}.")
    if path.is_symlink() and not path.exists():
        raise DataError(f"{str(path)!r} is a symbolic link that leads to no file.")
    if not path.exists():
        raise DataError(f"There is no file {str(path)!r}.")
    if not path.is_file():
        raise DataError(f"{str(path)!r} is not a file.")
    try:
        return reader(path, part, texts)
    except DataError:
        raise
    except Exception as error:  # whatever a library raises about a file that is damaged
        said = sentence(str(error)).rstrip(".") or type(error).__name__
        raise DataError(f"{str(path)!r} cannot be read: {said}.") from error


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return Path(name.removesuffix(".gz")).suffix if name.endswith(".gz") else path.suffix.lower()


def _most_bytes(path: Path) -> int:
    """Most bytes that a file may unpack to."""
    return max(_MODEST, _MOST_PACKED * path.stat().st_size)


def refuse_bomb(path: Path, n_bytes: int) -> None:
    """Raise if a file unpacks to more than data do."""
    if n_bytes > _most_bytes(path):
        raise DataError(
            f"{str(path)!r} would unpack to {n_bytes / GIB:.3g} GiB, far more than its length: "
            "it is no file of data."
        )


def refuse_too_large(path: Path, n_bytes: int, reader: str) -> None:
    """Raise if a table takes more memory than there is; `reader` is what Dask reads it by."""
    available = available_memory()
    if available is not None and n_bytes > available:
        raise DataError(
            f"{str(path)!r} takes {n_bytes / GIB:.3g} GiB in memory, into which the command line "
            f"reads it, but {available / GIB:.3g} GiB are available. In Python, estimators with "
            f"an approximation learn from dask.dataframe.{reader}({str(path)!r}), which needs "
            'pip install "manykernels[dask]".'
        )


# -- tables ----------------------------------------------------------------------------------


def _separated(path: Path, part: str | None, texts: Collection[str]) -> Contents:
    """A text with a line per sample; separators are commas, semicolons or tabs."""
    # A number has about as many letters as bytes in memory.
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
    _refuse_twice([name.strip() for name in names])
    frame = pd.read_csv(
        path,
        decimal="," if comma else ".",
        low_memory=False,
        skipinitialspace=True,
        # Labels such as 007 stay as they are.
        dtype={name: str for name in names if name.strip() in texts},
        **options,
    )
    return Contents(path, _named_columns(frame))


def _parquet(path: Path, part: str | None, texts: Collection[str]) -> Contents:
    import pyarrow.parquet as pq

    found = pq.read_metadata(path)
    n_bytes = found.num_rows * max(found.num_columns, 1) * _NUMBER
    refuse_bomb(path, n_bytes)
    refuse_too_large(path, n_bytes, "read_parquet")
    frame = pd.read_parquet(path)
    if not isinstance(frame.index, pd.RangeIndex):
        # The index that a frame was written with is a column like others.
        frame = frame.reset_index()
    return Contents(path, _named_columns(frame))


def _named_columns(frame: pd.DataFrame) -> pd.DataFrame:
    frame.columns = [str(name).strip() for name in frame.columns]
    _refuse_twice(list(frame.columns))
    if not len(frame) or not len(frame.columns):
        raise ValueError("it has no rows")
    return frame


def _refuse_twice(names: list[str]) -> None:
    """Refuse a header with a name that comes twice, which pandas would make two names of."""
    found = pd.Index(names)
    twice = found[found.duplicated() & (found != "")]
    if len(twice):
        raise ValueError(f"several columns are called {twice[0]!r}")


# -- sequences -------------------------------------------------------------------------------


def _fasta(path: Path, part: str | None, texts: Collection[str]) -> Contents:
    if path.suffix.lower() == ".gz":
        refuse_bomb(path, _unpacked(path))
    records = read_fasta(path)
    labels = pd.Index(records.names)
    sequences = pd.Series(records.sequences, index=labels)
    return Contents(path, pd.DataFrame(index=labels), labels, sequences)


def _unpacked(path: Path) -> int:
    """Length of what a file unpacks to, or a little more than what is refused."""
    most, length = _most_bytes(path), 0
    with gzip.open(path) as file:
        while length <= most and (piece := file.read(_PIECE)):
            length += len(piece)
    return length


# -- kernels ---------------------------------------------------------------------------------


def _npz(path: Path, part: str | None, texts: Collection[str]) -> Contents:
    refuse_bomb(path, matrices.size_of_npz(path))
    return _of_arrays(path, matrices.read_npz(path))


def _mat(path: Path, part: str | None, texts: Collection[str]) -> Contents:
    return _of_arrays(path, matrices.read_mat(path, _most_bytes(path)))


def _of_arrays(path: Path, arrays: dict[str, np.ndarray]) -> Contents:
    kernels, columns = matrices.sorted_arrays(arrays)
    return Contents(path, pd.DataFrame(columns), matrices=kernels)


# -- single cells ----------------------------------------------------------------------------


def _modality(path: Path, part: str | None, texts: Collection[str]) -> Contents:
    """A modality of MuData, or a table of AnnData, with what is known of the observations."""
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
            f"{str(path)!r} has several tables: name one, as in "
            f"--view {next(iter(tables))}={path.name}:{next(iter(tables))}; "
            f"there are {listed(tables)}."
        )
    name = part or ("X" if "X" in tables else next(iter(tables)))
    if name not in tables:
        raise DataError(f"{str(path)!r} has no table {name!r}, only {listed(tables)}.")
    labels = pd.Index([str(label) for label in tables[name].labels])
    known = data.obs.set_axis([str(label) for label in data.obs_names]).reindex(labels)
    return Contents(path, known, labels, tables[name].table)


#: How files are read, by the endings of their names.
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
#: Formats whose files have several tables, one of which is named where others name columns.
WITH_PARTS = frozenset({".h5ad", ".h5mu"})

"""Rows of Parquet, CSV and TSV files, read batch by batch.

Files are read one after the other by the readers of pyarrow that hold one batch at a time. Its
datasets read further ahead, up to whole files.
"""

from __future__ import annotations

import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..kernels.matching import shown
from ..kernels.tables import naming
from .base import Block, Reading, RowBlocks
from .checks import names_in, refuse_no_targets, refuse_unknown_names

# Endings of compressed text files; pyarrow reads them by these.
_COMPRESSED = {".gz", ".bz2", ".zst", ".lz4"}


class FileRows(RowBlocks):
    """Rows of one file, or of several, one after the other in the order of their names."""

    def __init__(self, path: str, y: Any, weight: Any, reading: Reading) -> None:
        super().__init__(reading)
        self.path = path
        self._y, self._weight = y, weight
        self._files = _files(path)
        taken = [*names_in(y), *names_in(weight)]
        kinds = {_format(file) for file in self._files}
        if len(kinds) > 1:
            raise ValueError(f"{path} has files of several kinds: {shown(self._files)}.")
        with naming(path):
            self._format = FORMATS[kinds.pop()](self._files, taken)
            columns = self._format.columns()
            for name, given in (("y", y), ("sample_weight", weight)):
                refuse_unknown_names(given, columns, name)
            if set(columns) <= set(taken):
                raise ValueError(f"there are no columns besides {shown(sorted(taken))}.")
            self._lengths = [self._format.n_rows(file) for file in self._files]
        known = [length for length in self._lengths if length is not None]
        self.n_rows = sum(known) if len(known) == len(self._files) else None

    @classmethod
    def takes(cls, X: Any) -> bool:
        return isinstance(X, str | os.PathLike)

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, reading: Reading) -> Self:
        path = os.fspath(X)
        _require_pyarrow(path)
        for file in _files(path):
            _format(file)
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            several = isinstance(given, list) and all(isinstance(one, str) for one in given)
            if given is not None and not isinstance(given, str) and not (name == "y" and several):
                raise ValueError(
                    f"X is the path of files, so that {name} has to be the name of one of their "
                    f"columns, got a {type(given).__name__}."
                )
        if y is None and reading.needs_y:
            refuse_no_targets()
        return cls(path, y, sample_weight, reading)

    def pieces(self, first_row: int) -> Iterator[Block]:
        start = number = 0
        for file, length in zip(self._files, self._lengths, strict=True):
            if length is not None and start + length <= first_row:
                start += length
                continue
            batches = self._format.batches(file, self.block_size)
            while True:
                with naming(f"{file}, after row {start} of all"):
                    batch = next(batches, None)
                if batch is None:
                    break
                if start + batch.num_rows > first_row:
                    yield self._block(batch.to_pandas(), start, number)
                start, number = start + batch.num_rows, number + (batch.num_rows > 0)

    def _block(self, frame: Any, start: int, number: int) -> Block:
        """Targets and weights divided from the table; those of another file may be elsewhere."""
        values = []
        for name, given in (("y", self._y), ("sample_weight", self._weight)):
            with naming(f"Block {number}, which begins at row {start}"):
                refuse_unknown_names(given, list(frame.columns), name)
            values.append(None if given is None else np.asarray(frame[given]))
        X = frame.drop(columns=[*names_in(self._y), *names_in(self._weight)])
        return Block(X, values[0], values[1], start, number)


class Format(ABC):
    """How files of one kind are read."""

    def __init__(self, files: list[str], exact: list[str]) -> None:
        self._first, self._exact = files[0], exact

    @abstractmethod
    def columns(self) -> list[str]:
        """Names of the columns of the first file."""

    @abstractmethod
    def n_rows(self, file: str) -> int | None:
        """Number of rows of a file, if it is written there."""

    @abstractmethod
    def batches(self, file: str, size: int) -> Iterator[Any]:
        """Rows of a file, some at a time."""


class Parquet(Format):
    """Parquet files."""

    def columns(self) -> list[str]:
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        # Without the index that pandas may have written as a column.
        return list(pq.read_schema(self._first).empty_table().to_pandas().columns)

    def n_rows(self, file: str) -> int | None:
        import pyarrow.parquet as pq

        return int(pq.read_metadata(file).num_rows)

    def batches(self, file: str, size: int) -> Iterator[Any]:
        import pyarrow.parquet as pq

        # Buffers that are filled before they are needed would be held to the end of the file.
        with pq.ParquetFile(file, pre_buffer=False) as opened:
            yield from opened.iter_batches(batch_size=size)


class Csv(Format):
    """Text files whose columns are divided by commas.

    pyarrow finds the types of columns in the first rows. What looks like whole numbers there may
    have fractions, or gaps, further on, so that such columns are read as floating-point numbers;
    all but targets and weights, the columns `exact`.
    """

    separator = ","

    def columns(self) -> list[str]:
        with self._opened(self._first) as reader:
            return list(reader.schema.names)

    def n_rows(self, file: str) -> int | None:
        return None

    def batches(self, file: str, size: int) -> Iterator[Any]:
        with self._opened(file, self._types()) as reader:
            yield from reader

    def _types(self) -> dict[str, Any]:
        """Types of the columns, those of the first file."""
        import pyarrow as pa  # type: ignore[import-untyped]

        with self._opened(self._first) as reader:
            return {
                one.name: pa.float64()
                if one.name not in self._exact
                and (pa.types.is_integer(one.type) or pa.types.is_null(one.type))
                else one.type
                for one in reader.schema
            }

    def _opened(self, file: str, types: dict[str, Any] | None = None) -> Any:
        from pyarrow import csv

        return csv.open_csv(
            file,
            parse_options=csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=types),
        )


class Tsv(Csv):
    """Text files whose columns are divided by tabs."""

    separator = "\t"


#: What the endings of files say of their contents.
FORMATS: dict[str, type[Format]] = {
    ".parquet": Parquet,
    ".pq": Parquet,
    ".csv": Csv,
    ".tsv": Tsv,
}


def _require_pyarrow(path: str) -> None:
    try:
        import pandas  # noqa: F401
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"Reading {path} needs pyarrow and pandas: pip install 'manykernels[files]' has both."
        ) from error


def _files(path: str) -> list[str]:
    """The files at a path, in a folder, or of a pattern, by name."""
    if os.path.isdir(path):
        inside = (str(one) for one in sorted(Path(path).rglob("*")) if one.is_file())
        # Others write files of their own beside the data, such as _SUCCESS.
        found = [one for one in inside if not os.path.basename(one).startswith((".", "_"))]
    elif os.path.exists(path):
        found = [path]
    else:
        found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise FileNotFoundError(f"There is no file {path}: X is the path of files with rows.")
    return found


def _format(file: str) -> str:
    """The ending of a file, by which its format is known."""
    stem, ending = os.path.splitext(file)
    if ending in _COMPRESSED:
        ending = os.path.splitext(stem)[1]
    if ending.lower() not in FORMATS:
        raise ValueError(
            f"{file}: the ending {ending!r} is none of {', '.join(FORMATS)}, so that it is not "
            "known how to read it. (An array in a .npy file: np.load(file, mmap_mode='r').)"
        )
    return ending.lower()

"""Rows of Parquet, CSV and TSV files, read batch by batch."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..kernels.matching import shown
from ..kernels.tables import naming
from .base import Block, Reading, RowBlocks
from .checks import names_in, refuse_no_targets, refuse_unknown_names

# What the endings of files say of their contents: the format of pyarrow, and what divides columns.
_FORMATS = {
    ".parquet": ("parquet", ""),
    ".pq": ("parquet", ""),
    ".csv": ("csv", ","),
    ".tsv": ("csv", "\t"),
}
# Endings of compressed text files; pyarrow reads them by these.
_COMPRESSED = {".gz", ".bz2", ".zst", ".lz4"}
# Batches read ahead of the one in use: enough to read while computing, and little memory.
_AHEAD = 2


class FileRows(RowBlocks):
    """Rows of one file, or of several, one after the other in the order of their names."""

    def __init__(self, path: str, y: Any, weight: Any, reading: Reading) -> None:
        super().__init__(reading)
        self.path = path
        self._y, self._weight = y, weight
        self._dataset = _dataset(path, [*names_in(y), *names_in(weight)])
        columns = self._dataset.schema.names
        for name, given in (("y", y), ("sample_weight", weight)):
            with naming(path):
                refuse_unknown_names(given, columns, name)
        taken = {*names_in(y), *names_in(weight)}
        self._columns = [column for column in columns if column not in taken]
        if not self._columns:
            raise ValueError(f"{path} has no columns besides {shown(sorted(taken))}.")
        if self._dataset.format.default_extname == "parquet":
            # Written at the end of each file; the rows of other files are not counted.
            self.n_rows = self._dataset.count_rows()

    @classmethod
    def takes(cls, X: Any) -> bool:
        return isinstance(X, str | os.PathLike)

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, reading: Reading) -> Self:
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            several = isinstance(given, list) and all(isinstance(one, str) for one in given)
            if given is not None and not isinstance(given, str) and not (name == "y" and several):
                raise ValueError(
                    f"X is the path of files, so that {name} has to be the name of one of their "
                    f"columns, got a {type(given).__name__}."
                )
        if y is None and reading.needs_y:
            refuse_no_targets()
        return cls(os.fspath(X), y, sample_weight, reading)

    def pieces(self, first_row: int) -> Iterator[Block]:
        scanner = self._dataset.scanner(
            batch_size=self.block_size, batch_readahead=_AHEAD, fragment_readahead=1
        )
        start = number = 0
        batches = scanner.to_batches()
        while True:
            with naming(f"{self.path}, after row {start}"):
                batch = next(batches, None)
            if batch is None:
                return
            if start + batch.num_rows > first_row:
                yield self._block(batch, start, number)
            start, number = start + batch.num_rows, number + (batch.num_rows > 0)

    def _block(self, batch: Any, start: int, number: int) -> Block:
        frame = batch.to_pandas()
        y = None if self._y is None else np.asarray(frame[self._y])
        weight = None if self._weight is None else np.asarray(frame[self._weight])
        return Block(frame[self._columns], y, weight, start, number)


def _dataset(path: str, exact: list[str]) -> Any:
    """The dataset of pyarrow; whole numbers of text files are kept in the columns `exact`."""
    try:
        import pandas  # noqa: F401
        import pyarrow.dataset as ds  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(
            f"Reading {path} needs pyarrow and pandas: pip install 'manykernels[files]' has both."
        ) from error
    files = _files(path)
    found = {_format(file) for file in files}
    if len(found) > 1:
        raise ValueError(f"{path} has files of several kinds: {shown(files)}.")
    kind, separator = found.pop()
    with naming(path):
        if kind == "parquet":
            return ds.dataset(files, format="parquet")
        return _texts(files, separator, exact)


def _texts(files: list[str], separator: str, exact: list[str]) -> Any:
    """Dataset of CSV or TSV files.

    pyarrow finds the types of columns in the first rows. What looks like whole numbers there may
    have fractions, or gaps, further on, so that such columns are read as floating-point numbers.
    """
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.csv  # type: ignore[import-untyped]
    import pyarrow.dataset as ds

    options = pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    form = ds.CsvFileFormat(parse_options=options)
    dataset = ds.dataset(files, format=form)
    fields = [
        pa.field(one.name, pa.float64())
        if one.name not in exact and (pa.types.is_integer(one.type) or pa.types.is_null(one.type))
        else one
        for one in dataset.schema
    ]
    return ds.dataset(files, format=form, schema=pa.schema(fields))


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


def _format(file: str) -> tuple[str, str]:
    stem, ending = os.path.splitext(file)
    if ending in _COMPRESSED:
        ending = os.path.splitext(stem)[1]
    if ending.lower() not in _FORMATS:
        raise ValueError(
            f"{file}: the ending {ending!r} is none of {', '.join(_FORMATS)}, so that it is not "
            "known how to read it."
        )
    return _FORMATS[ending.lower()]

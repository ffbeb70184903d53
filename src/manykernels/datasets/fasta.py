"""Sequences read from FASTA files."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

# Every gzip file begins with these bytes.
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, eq=False)
class FastaRecords:
    """Sequences, with their names as labels of rows; what :func:`read_fasta` returns.

    Kernels of strings and estimators take it as a list of strings. :class:`~manykernels.Views`
    match it with other tables by name. ``pandas.Series(records.sequences, records.names)`` is the
    same as a Series.

    Attributes
    ----------
    names : ndarray of str objects
        The first word of each header.
    sequences : ndarray of str objects
    descriptions : ndarray of str objects
        What follows the name in each header.
    """

    names: np.ndarray
    sequences: np.ndarray
    descriptions: np.ndarray

    @property
    def index(self) -> np.ndarray:
        """Labels of the rows: the names."""
        return self.names

    @property
    def shape(self) -> tuple[int]:
        return (len(self.names),)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.sequences)

    def __getitem__(self, rows: Any) -> Any:
        """A sequence by its number; records by a slice, a mask or numbers."""
        if isinstance(rows, int | np.integer):
            return self.sequences[rows]
        return FastaRecords(self.names[rows], self.sequences[rows], self.descriptions[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.sequences, dtype=dtype)

    def __repr__(self) -> str:
        lengths = [len(sequence) for sequence in self.sequences]
        return f"FastaRecords({len(self)} sequences of {min(lengths)} to {max(lengths)} letters)"


def read_fasta(path: str | Path) -> FastaRecords:
    """Read the sequences of a FASTA file, plain or compressed by gzip.

    A record is a header, ``>`` and a name, maybe with a description after it, and the sequence in
    one or more lines, in which blanks do not count. Letters are kept as they are; an asterisk at
    the end of a sequence, which marks a stop, is dropped. Empty lines and comments, lines that
    begin with ``;``, are skipped.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    records : FastaRecords
        With `names`, `sequences` and `descriptions`. It can be passed on as it is: to kernels of
        strings, to estimators, and as one of several :class:`~manykernels.Views`, whose rows are
        matched by name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from manykernels.datasets import read_fasta
    >>> from manykernels.kernels import Spectrum
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "proteins.fasta"
    ...     _ = path.write_text(">P1 a first one\\nMKVL\\nAAGI\\n>P2\\nMKVA\\n")
    ...     records = read_fasta(path)
    >>> records
    FastaRecords(2 sequences of 4 to 8 letters)
    >>> dict(zip(records.names, records))
    {'P1': 'MKVLAAGI', 'P2': 'MKVA'}
    >>> Spectrum(k=2)(records).round(2)
    array([[1.  , 0.44],
           [0.44, 1.  ]])
    """
    headers: list[tuple[str, str, int]] = []
    parts: list[list[str]] = []
    with _opened(path) as file:
        for number, raw in enumerate(file, 1):
            line = _text(raw, path, number).strip()
            if not line or line.startswith(";"):
                continue
            if line.startswith(">"):
                name, _, description = line[1:].strip().partition(" ")
                if not name:
                    raise ValueError(f"{path}, line {number}: the header '>' has no name.")
                headers.append((name, description.strip(), number))
                parts.append([])
            elif not headers:
                raise ValueError(
                    f"{path}, line {number}: a FASTA file begins with a header, '>' and a name; "
                    f"got {line[:20]!r}."
                )
            else:
                parts[-1].append("".join(line.split()))
    if not headers:
        raise ValueError(f"{path} is empty: it has no record, which begins with '>' and a name.")
    sequences = ["".join(lines).removesuffix("*") for lines in parts]
    _check_records(path, headers, sequences)
    names, descriptions, _ = zip(*headers, strict=True)
    columns = names, sequences, descriptions
    return FastaRecords(*(np.array(column, dtype=object) for column in columns))


def _opened(path: str | Path) -> IO[bytes]:
    with Path(path).open("rb") as file:
        compressed = file.read(len(_GZIP)) == _GZIP
    return gzip.open(path) if compressed else Path(path).open("rb")  # type: ignore[return-value]


def _text(raw: bytes, path: str | Path, number: int) -> str:
    try:
        # A mark at the beginning, which some editors of Windows write, is no letter.
        return raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number}: this is not text ({error}).") from error


def _check_records(
    path: str | Path, headers: list[tuple[str, str, int]], sequences: list[str]
) -> None:
    """Refuse records without letters, and names that come twice."""
    first: dict[str, int] = {}
    for (name, _, number), sequence in zip(headers, sequences, strict=True):
        if not sequence:
            raise ValueError(f"{path}, line {number}: the record {name!r} has no sequence.")
        if name in first:
            raise ValueError(
                f"{path}, line {number}: the name {name!r} is that of the record of line "
                f"{first[name]} as well; names have to differ."
            )
        first[name] = number

"""Reader of FASTA files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..utils.files import text_lines


@dataclass(frozen=True, eq=False)
class FastaRecords:
    """Sequences with their names as row labels, returned by :func:`read_fasta`.

    String kernels and estimators accept it like a list of strings. :class:`~manykernels.Views`
    matches it with other tables by name. ``pandas.Series(records.sequences, records.names)``
    converts it to a Series.

    Attributes
    ----------
    names : ndarray of str objects
        First word of each header.
    sequences : ndarray of str objects
    descriptions : ndarray of str objects
        Rest of each header.
    """

    names: np.ndarray
    sequences: np.ndarray
    descriptions: np.ndarray

    @property
    def index(self) -> np.ndarray:
        """Row labels, which are the names."""
        return self.names

    @property
    def shape(self) -> tuple[int]:
        return (len(self.names),)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.sequences)

    def __getitem__(self, rows: Any) -> Any:
        """Return a sequence by its index, or records by a slice, a mask or indices."""
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

    A record is a header, ``>`` and a name, optionally with a description, and the sequence in one
    or more lines, in which blanks are ignored. Letters are not changed; an asterisk at the end of
    a sequence, which marks a stop, is dropped. Empty lines and comments, which begin with ``;``,
    are skipped.

    Parameters
    ----------
    path : str or path
        File to read.

    Returns
    -------
    records : FastaRecords
        Records with the attributes `names`, `sequences` and `descriptions`. They can be passed to
        string kernels, to estimators, and as one of several :class:`~manykernels.Views`, whose
        rows are matched by name.

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
    for number, text in text_lines(path):
        line = text.strip()
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
                f"{path}, line {number}: a FASTA file must begin with a header, '>' and a "
                f"name; got {line[:20]!r}."
            )
        else:
            parts[-1].append("".join(line.split()))
    if not headers:
        raise ValueError(f"{path} is empty: it has no records, which begin with '>' and a name.")
    sequences = ["".join(lines).removesuffix("*") for lines in parts]
    _check_records(path, headers, sequences)
    names, descriptions, _ = zip(*headers, strict=True)
    columns = names, sequences, descriptions
    return FastaRecords(*(np.array(column, dtype=object) for column in columns))


def _check_records(
    path: str | Path, headers: list[tuple[str, str, int]], sequences: list[str]
) -> None:
    """Raise if a record has no sequence, or a name occurs twice."""
    first: dict[str, int] = {}
    for (name, _, number), sequence in zip(headers, sequences, strict=True):
        if not sequence:
            raise ValueError(f"{path}, line {number}: the record {name!r} has no sequence.")
        if name in first:
            raise ValueError(
                f"{path}, line {number}: the record of line {first[name]} has the same name, "
                f"{name!r}; names must differ."
            )
        first[name] = number

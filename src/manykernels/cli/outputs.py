"""Files that a command writes.

Their paths are checked before the work. They are written at the end, completely or not at all.
"""

import os
import tempfile
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from ..utils.files import replacing
from .console import (
    DataError,
    UsageError,
    say,
)


class Outputs:
    """Output files of a command.

    Parameters
    ----------
    inputs : iterable of Path
        Input files, which must not be overwritten.
    force : bool
        Whether existing files may be replaced.
    """

    def __init__(self, inputs: Iterable[Path], *, force: bool) -> None:
        self._taken = {os.path.realpath(path): "is read by the same command" for path in inputs}
        self._force = force
        self._contents: list[tuple[str, Path, bytes]] = []

    def claim(self, path: Path | None, option: str, suffixes: tuple[str, ...]) -> None:
        """Raise if `path` cannot be written later; do nothing if it is None."""
        if path is None:
            return
        name = str(path)
        if path.suffix.lower() not in suffixes:
            raise UsageError(f"{option} {name!r} must end with {' or '.join(suffixes)}.")
        if path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
            raise DataError(
                f'{option} {name!r} needs pyarrow: pip install "manykernels[cli,parquet]", or '
                "write .csv."
            )
        real = os.path.realpath(path)
        if real in self._taken:
            raise UsageError(f"{option} {name!r} {self._taken[real]}.")
        if os.path.islink(real):
            raise DataError(f"{option} {name!r} is a symbolic link to itself.")
        if not path.parent.is_dir():
            raise DataError(f"There is no folder {str(path.parent)!r} for {option} {name!r}.")
        if path.exists() and not path.is_file():
            raise DataError(f"{option} {name!r} exists and is not a file.")
        if path.exists() and not self._force:
            raise DataError(f"{name!r} exists already. Pass --force to replace it.")
        self._taken[real] = "is written twice"

    def add(self, title: str, path: Path | None, save: Callable[[Path], object]) -> None:
        """Let `save` write a temporary file of the same name, and keep its contents."""
        if path is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            draft = Path(folder) / path.name
            save(draft)
            self._contents.append((title, path, draft.read_bytes()))

    def write(self) -> None:
        """Write all files."""
        for _, path, content in self._contents:
            with replacing(path, len(content)) as file:
                file.write(content)

    def report(self) -> None:
        """Print the names of the files."""
        for title, path, _ in self._contents:
            say(f"{title} written to {path}")


#: Formats of output tables.
TABLES = (".csv", ".tsv", ".parquet")


#: Spreadsheet programs evaluate texts with these first characters, unless they are numbers.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def save_table(frame: pd.DataFrame, path: Path, escape_formulas: bool = False) -> None:
    """Write a table with its index, in the format given by the suffix of the file."""
    if path.suffix.lower() == ".parquet":
        frame.to_parquet(path)  # `claim` has made sure that pyarrow is there
        return
    if escape_formulas:
        frame = without_formulas(frame)
    frame.to_csv(path, sep="\t" if path.suffix.lower() == ".tsv" else ",")


def without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Put an apostrophe before texts that a spreadsheet program would evaluate."""
    texts = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    escaped = frame.assign(**{name: frame[name].map(_escaped) for name in texts})
    escaped.index = escaped.index.map(_escaped).rename(_escaped(frame.index.name))
    return escaped.rename(columns=_escaped)


def _escaped(cell: object) -> object:
    if not isinstance(cell, str) or not cell.startswith(_FORMULAS):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def named(labels: pd.Index) -> pd.Index:
    """Return row labels with a name, by default "row"."""
    return labels if labels.name is not None else labels.rename("row")


def class_table(
    classes: np.ndarray, probabilities: np.ndarray, labels: pd.Index, predictions: np.ndarray
) -> pd.DataFrame:
    """Return a table of predicted classes and probabilities."""
    columns = {"prediction": predictions}
    columns |= {f"probability_{name}": probabilities[:, k] for k, name in enumerate(classes)}
    return pd.DataFrame(columns, index=labels)

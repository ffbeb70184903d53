"""Files that a command writes: all that is wrong with them is told before any work is done, and
they are written once everything is known, each of them whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from .._files import replacing
from .errors import DataError, UsageError
from .talking import say


class Outputs:
    """Files to be written.

    Parameters
    ----------
    inputs : files that are read, and must not be written
    force : whether files that are there may be replaced
    """

    def __init__(self, inputs: Iterable[Path], *, force: bool) -> None:
        self._taken = {os.path.realpath(path): "is read by the same command" for path in inputs}
        self._force = force
        self._contents: list[tuple[str, Path, bytes]] = []

    def claim(self, path: Path | None, option: str, suffixes: tuple[str, ...]) -> None:
        """Refuse a path that could not be written later; None is no path."""
        if path is None:
            return
        name = str(path)
        if path.suffix.lower() not in suffixes:
            raise UsageError(f"{option} {name!r} has to end with {' or '.join(suffixes)}.")
        real = os.path.realpath(path)
        if real in self._taken:
            raise UsageError(f"{option} {name!r} {self._taken[real]}.")
        if os.path.islink(real):
            raise DataError(f"{option} {name!r} is a symbolic link that leads to itself.")
        if not path.parent.is_dir():
            raise DataError(f"There is no folder {str(path.parent)!r} for {option} {name!r}.")
        if path.exists() and not path.is_file():
            raise DataError(f"{option} {name!r} is there and is no file.")
        if path.exists() and not self._force:
            raise DataError(f"{name!r} is there already: --force replaces it.")
        self._taken[real] = "is written twice"

    def add(self, what: str, path: Path | None, save: Callable[[Path], Any]) -> None:
        """Let `save` write a file of the same name elsewhere, and keep its contents."""
        if path is None:
            return
        with tempfile.TemporaryDirectory() as folder:
            draft = Path(folder) / path.name
            save(draft)
            self._contents.append((what, path, draft.read_bytes()))

    def write(self) -> None:
        """Write all of them."""
        for _, path, content in self._contents:
            with replacing(path, len(content)) as file:
                file.write(content)

    def tell(self) -> None:
        """Say what was written where."""
        for what, path, _ in self._contents:
            say(f"{what} written to {path}")


#: Formats of tables that are written.
TABLES = (".csv", ".tsv", ".parquet")


#: Texts that begin so are formulas to spreadsheet programs, unless they are numbers.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def save_table(frame: pd.DataFrame, path: Path, escape_formulas: bool = False) -> None:
    """Write a table with its index, in the format that the name of the file asks for."""
    if path.suffix.lower() == ".parquet":
        frame.to_parquet(path)
        return
    if escape_formulas:
        frame = without_formulas(frame)
    frame.to_csv(path, sep="\t" if path.suffix.lower() == ".tsv" else ",")


def without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with an apostrophe before texts that a spreadsheet program would compute."""
    texts = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    escaped = frame.assign(**{name: frame[name].map(_escaped) for name in texts})
    escaped.index = escaped.index.map(_escaped).rename(_escaped(frame.index.name))
    return escaped.rename(columns=_escaped)


def _escaped(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(_FORMULAS):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell

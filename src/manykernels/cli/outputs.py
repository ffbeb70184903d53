"""Files that a command writes: all that is wrong with them is told before any work is done, and
they are written once everything is known, each of them whole or not at all."""

from __future__ import annotations

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
        self._taken = {path.resolve(): "is read by the same command" for path in inputs}
        self._force = force
        self._contents: list[tuple[str, Path, bytes]] = []

    def claim(self, path: Path | None, option: str, suffixes: tuple[str, ...]) -> None:
        """Refuse a path that could not be written later; None is no path."""
        if path is None:
            return
        name = str(path)
        if path.suffix.lower() not in suffixes:
            raise UsageError(f"{option} {name!r} has to end with {' or '.join(suffixes)}.")
        if path.resolve() in self._taken:
            raise UsageError(f"{option} {name!r} {self._taken[path.resolve()]}.")
        if not path.parent.is_dir():
            raise DataError(f"There is no folder {str(path.parent)!r} for {option} {name!r}.")
        if path.exists() and not path.is_file():
            raise DataError(f"{option} {name!r} is there and is no file.")
        if path.exists() and not self._force:
            raise DataError(f"{name!r} is there already: --force replaces it.")
        self._taken[path.resolve()] = "is written twice"

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


def save_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table with its index, in the format that the name of the file asks for."""
    if path.suffix.lower() == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="\t" if path.suffix.lower() == ".tsv" else ",")

"""Finished cells in a folder: a JSON file for each, found again by its fingerprint."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import sklearn

from .._files import replacing
from .._warnings import warn_caller
from .cells import Cell
from .fingerprint import fingerprint

# Of the files; another one is written if fields change, and older files are not looked at.
_FORMAT = 1
# Fields that a cell may not have.
_OPTIONAL = {
    "n_kernels": int,
    "n_used": int,
    "n_support": int,
    "rel_gap": float,
    "converged": bool,
}


@dataclass(frozen=True)
class CellFolder:
    """A folder of finished cells. Others may write to it at the same time."""

    path: Path

    @classmethod
    def at(cls, path: Any) -> CellFolder:
        """The folder, made if it is not there."""
        folder = Path(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"path must name a folder for finished cells; {str(path)!r} cannot be one: "
                f"{error}."
            ) from error
        return cls(folder.resolve())

    def find(self, key: str) -> Cell | None:
        """A finished cell, or None; a file that cannot be read is told of by a warning."""
        file = self._file(key)
        if not file.exists():
            return None
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            if content["key"] != key:
                raise ValueError("it belongs to another cell")
            return _read(content["cell"])
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            warn_caller(
                f"{file} is damaged ({type(error).__name__}: {error}); the cell is computed "
                "again.",
                RuntimeWarning,
            )
            return None

    def keep(self, key: str, cell: Cell, **about: Any) -> None:
        """Write a finished cell; `about` is for people who look into the file."""
        content = {**about, "key": key, "cell": _plain(asdict(cell))}
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode()
        with replacing(self._file(key), len(text)) as file:
            file.write(text)

    def _file(self, key: str) -> Path:
        return self.path / f"{key}.json"


def key_of(method: str, data: str, split: Any, scoring: str) -> str:
    """Fingerprint of a cell: of the fingerprints of its parts, and of the versions."""
    package = sys.modules[__name__.partition(".")[0]]
    versions = package.__version__, sklearn.__version__
    return fingerprint(_FORMAT, versions, method, data, split, scoring)


def _plain(value: Any) -> Any:
    """Numbers that JSON has not are written by name."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _read(content: dict[str, Any]) -> Cell:
    """A cell, every field of the kind that it has to be."""
    names = [one.name for one in fields(Cell)]
    if sorted(content) != sorted(names):
        raise ValueError(f"it has the fields {', '.join(content)}")
    known: dict[str, Any] = dict(content)
    known["scores"] = {str(name): float(score) for name, score in content["scores"].items()}
    known["unscored"] = {str(name): str(why) for name, why in content["unscored"].items()}
    for name in ("fit_time", "predict_time"):
        known[name] = float(content[name])
    for name, kind in {
        "n_kernels": int,
        "n_used": int,
        "n_support": int,
        "rel_gap": float,
    }.items():
        known[name] = None if content[name] is None else kind(content[name])
    if not known["scores"] or known["failure"] is not None:
        raise ValueError("it has no scores")
    return Cell(**known)

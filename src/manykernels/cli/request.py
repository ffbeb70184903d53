"""What a command is asked for: by options, and by a file in TOML that has the same fields.

An option on the command line wins over the file. Files that it names are looked for beside it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .errors import UsageError
from .files import is_readable
from .grammar import ViewRequest, checked_name, kernel_of, view_of

TASKS = ("auto", "classification", "regression")
MISSING = ("error", "mean", "conditional")
MACHINES = ("fisher", "svm")
# Fields that are one of some words; the first is the default.
_WORDS = {"task": TASKS, "missing": MISSING, "machine": MACHINES}
_NUMBERS = ("p", "reg", "C")
_TEXTS = ("index", "target", "approximation")
#: Fields that are options of commands, besides the views.
OPTIONS = (*_WORDS, *_NUMBERS, *_TEXTS, "impute")
_VIEW = ("file", "columns", "kernels")
# A specification is a page of text; more than this many bytes is something else.
_LONGEST_SPEC = 2**20


@dataclass(frozen=True)
class Request:
    """Views, how their rows are matched, what is predicted, and by what.

    `p`, `reg` and `C` are the values to try; None for the default ones.
    """

    views: tuple[ViewRequest, ...]
    index: str | None = None
    target: str | None = None
    target_file: Path | None = None
    missing: str = "error"
    impute: bool = False
    task: str = "auto"
    machine: str = "fisher"
    p: tuple[float, ...] | None = None
    reg: tuple[float, ...] | None = None
    C: tuple[float, ...] | None = None
    approximation: str = "exact"

    @classmethod
    def of(cls, views: Sequence[str], spec: Path | None, **options: Any) -> Request:
        """Of options, None where they were not given, and of a specification."""
        fields, found = ({}, {}) if spec is None else _specified(spec)
        fields |= {name: value for name, value in options.items() if value is not None}
        given = [view_of(text) for text in views]
        names = [view.name for view in given]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"There are several views {name!r}: names have to differ.")
        found |= {view.name: view for view in given}
        if not found:
            raise UsageError("There is no view: pass --view name=file, once for every view.")
        return cls(tuple(found.values()), **_checked(fields, spec))

    def with_target(self) -> Request:
        """This request, if it says what to predict."""
        if self.target is None:
            raise UsageError("There is no target: pass --target with the name of its column.")
        return self

    @property
    def files(self) -> list[Path]:
        """All files that are read."""
        own = [] if self.target_file is None else [self.target_file]
        return [view.file for view in self.views] + own

    def by(self, machine: str) -> Request:
        """The same with another machine, and the default values of what only the other has."""
        if machine == self.machine:
            return self
        return replace(self, machine=machine, reg=None, C=None, approximation="exact")


# -- fields ----------------------------------------------------------------------------------


def _checked(fields: dict[str, Any], spec: Path | None) -> dict[str, Any]:
    """Values of fields, read and checked, wherever they come from."""
    checked = dict(fields)
    for name, words in _WORDS.items():
        if name in fields and fields[name] not in words:
            raise UsageError(f"{name} is {_either(words)}, not {fields[name]!r}.")
    for name in _NUMBERS:
        if name in fields:
            checked[name] = numbers_of(fields[name], name)
    if "target" in fields:
        checked["target"], checked["target_file"] = _target(fields["target"])
    machine = checked.get("machine", MACHINES[0])
    for name, owner in {"reg": "fisher", "C": "svm"}.items():
        if checked.get(name) is not None and machine != owner:
            other = "C" if name == "reg" else "reg"
            raise UsageError(f"{name} goes with machine {owner}; the one of {machine} is {other}.")
    return checked


def numbers_of(value: Any, name: str) -> tuple[float, ...] | None:
    """Numbers from a text such as ``1,2,inf``, or from TOML; None for ``auto``."""
    if value == "auto":
        return None
    parts = value.split(",") if isinstance(value, str) else value
    parts = parts if isinstance(parts, list) else [parts]
    try:
        if not parts or any(isinstance(part, bool) for part in parts):
            raise ValueError
        found = tuple(float(part) for part in parts)
        if any(map(math.isnan, found)):
            raise ValueError
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(
            f"{name} is auto or one or more numbers, such as 2 or 1,2,inf; got {value!r}."
        ) from error
    return found


def _target(text: str) -> tuple[str, Path | None]:
    """The column to predict, and its own file if it has one: ``column`` or ``file:column``."""
    file, colon, column = text.rpartition(":")
    if colon and column and is_readable(Path(file)):
        return column, Path(file)
    if not text:
        raise UsageError("target is the name of a column, or file:column.")
    return text, None


def _either(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


# -- TOML ------------------------------------------------------------------------------------


def _specified(path: Path) -> tuple[dict[str, Any], dict[str, ViewRequest]]:
    """Fields and views of a specification."""
    try:
        content = path.read_bytes()
        if len(content) > _LONGEST_SPEC:
            raise ValueError("it is longer than specifications are")
        found = tomllib.loads(content.decode())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"The specification {str(path)!r} cannot be read: {error}") from error
    known = (*OPTIONS, "views")
    _refuse_unknown(found, known, f"The specification {path.name!r}")
    for name in (*_WORDS, *_TEXTS):
        _check_kind(found.get(name, ""), str, f"{name} in {path.name!r}", "a text")
    _check_kind(found.get("impute", False), bool, f"impute in {path.name!r}", "true or false")
    views = found.pop("views", {})
    _check_kind(views, dict, f"views in {path.name!r}", "a table, such as [views.genes]")
    if "target" in found:
        column, file = _target(found["target"])
        found["target"] = column if file is None else f"{path.parent / file}:{column}"
    return found, {name: _view(name, entry, path) for name, entry in views.items()}


def _view(name: str, entry: Any, path: Path) -> ViewRequest:
    where = f"views.{name} in {path.name!r}"
    if isinstance(entry, str):
        entry = {"file": entry}
    _check_kind(entry, dict, where, 'a file, or a table with file = "…"')
    _refuse_unknown(entry, _VIEW, where)
    if "file" not in entry:
        raise UsageError(f"{where} has no file.")
    _check_kind(entry["file"], str, f"file of {where}", "a text")
    columns, kernels = (_texts(entry.get(key, []), f"{key} of {where}") for key in _VIEW[1:])
    return ViewRequest(
        checked_name(name),
        path.parent / entry["file"],
        tuple(columns) or None,
        tuple(map(kernel_of, kernels)),
    )


def _texts(value: Any, what: str) -> list[str]:
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise UsageError(f"{what} is a list of texts, not {value!r}.")
    return entries


def _check_kind(value: Any, kind: type, what: str, expected: str) -> None:
    if not isinstance(value, kind):
        raise UsageError(f"{what} is {expected}, not {value!r}.")


def _refuse_unknown(found: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for name in found:
        if name not in known:
            raise UsageError(f"{what} has a key {name!r}; known are {', '.join(known)}.")

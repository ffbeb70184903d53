"""What a command is asked for: by options, and by a file in TOML that has the same fields.

An option on the command line wins over the file. Files that it names are looked for beside it.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import kernels as room
from ..kernels import Kernel
from .console import UsageError
from .files import is_readable

# -------------------------------------------------------------------------------------------------
# What a view is, as text: ``name=file``, ``name=file:columns``, ``name=file:columns:kernel``.
#
# A kernel is the name of a class of :mod:`manykernels.kernels`, in any case, maybe with
# parameters: ``rbf``, ``rbf(gamma=0.5)``. Parameters are numbers, texts, True, False or None,
# read as such and never evaluated.


# Kernels of a table or of sequences that parameters of numbers and texts describe.
KERNELS: dict[str, type[Kernel]] = {
    name.lower(): getattr(room, name)
    for name in (
        *("Linear", "Polynomial", "RBF", "Laplacian", "Cosine", "ChiSquare", "Intersection"),
        *("Categorical", "Jaccard", "Tanimoto", "Spectrum", "Mismatch", "Gapped"),
        *("WeightedDegree",),
    )
}
_HOW = "A view is name=file, name=file:column,column or name=file:rbf(gamma=0.5)"
# A name, maybe with something in parentheses after it.
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*(\(.*\))?\s*", re.DOTALL)
# Names become those of kernels, in tables and in files: no characters that end lines or options.
_NAME = re.compile(r"[^\W][\w .+-]*")
# Longest text of a kernel; parsing a longer one could exhaust the stack.
_LONGEST = 200


@dataclass(frozen=True)
class ViewRequest:
    """A view: its name, its file, some columns of it (None: all), kernels (none: default ones)."""

    name: str
    file: Path
    columns: tuple[str, ...] | None = None
    kernels: tuple[Kernel, ...] = ()


def view_of(text: str) -> ViewRequest:
    """The view that ``--view`` describes."""
    name, equals, rest = text.partition("=")
    if not equals or not rest:
        raise UsageError(f"--view {text!r} has no file. {_HOW}.")
    file, *parts = _parts(rest)
    columns, kernels = None, []
    for position, part in enumerate(parts):
        if _is_kernel(part):
            kernels.append(kernel_of(part))
        elif position == 0:
            columns = tuple(column.strip() for column in part.split(","))
        else:
            raise UsageError(
                f"--view {text!r}: {part!r} is no kernel; there are {', '.join(KERNELS)}. "
                "Columns come first, separated by commas."
            )
    if columns is not None and "" in columns:
        raise UsageError(f"--view {text!r} names a column without letters. {_HOW}.")
    return ViewRequest(checked_name(name), Path(file), columns, tuple(kernels))


def checked_name(name: str) -> str:
    """The name of a view, if it can be one."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name of a view: it has letters, digits, '_', '-', '.', '+' and "
            f"blanks. {_HOW}."
        )
    return name


def _parts(text: str) -> list[str]:
    """What colons separate that are not in parentheses or quotes, nor that of a drive."""
    parts, depth, quote = [""], 0, ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'" and depth:
            quote = letter
        elif letter in "()":
            depth += 1 if letter == "(" else -1
        drive = place == 1 and text[0].isalpha() and text[2:3] in ("\\", "/")
        if letter == ":" and depth <= 0 and not quote and not drive:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _is_kernel(text: str) -> bool:
    """Whether a part of a view is a kernel: by its name, or because it has parameters."""
    found = _CALL.fullmatch(text)
    return found is not None and (found[2] is not None or found[1].lower() in KERNELS)


def kernel_of(text: str) -> Kernel:
    """The kernel that a text such as ``rbf(gamma=0.5)`` describes."""
    name, parameters = _call(text)
    kind = KERNELS.get(name.lower())
    if kind is None:
        raise UsageError(f"There is no kernel {name!r}; there are {', '.join(KERNELS)}.")
    known = [one for one in inspect.signature(kind).parameters if one != "columns"]
    for parameter in parameters:
        if parameter not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"The kernel {name} has no parameter {parameter!r}; {has}.")
    return kind(**parameters)


def _call(text: str) -> tuple[str, dict[str, Any]]:
    """Name and parameters, without evaluating anything."""
    found = _CALL.fullmatch(text)
    if found is None or len(text) > _LONGEST:
        raise UsageError(
            f"{text[:_LONGEST]!r} is no kernel: write its name, such as rbf(gamma=0.5)."
        )
    if found[2] is None:
        return found[1], {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd literals, which are refused or harmless
            call = ast.parse(text.strip(), mode="eval").body
            if not isinstance(call, ast.Call) or call.args or None in _keywords(call):
                raise ValueError("parameters have names")
            values = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
        odd = [key for key, value in values.items() if not _is_plain(value)]
        if odd:
            raise ValueError(f"{odd[0]} is neither a number nor a text")
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise UsageError(
            f"{text!r} is no kernel: parameters are numbers or texts and have names, such as "
            "rbf(gamma=0.5) or rbf(gamma='median')."
        ) from error
    return found[1], values


def _keywords(call: ast.Call) -> list[str | None]:
    return [one.arg for one in call.keywords]


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


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

"""What a view is, as text: ``name=file``, ``name=file:columns``, ``name=file:columns:kernel``.

A kernel is the name of a class of :mod:`manykernels.kernels`, in any case, maybe with parameters:
``rbf``, ``rbf(gamma=0.5)``. Parameters are numbers, texts, True, False or None, read as such and
never evaluated.
"""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import kernels as room
from ..kernels import Kernel
from .errors import UsageError

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

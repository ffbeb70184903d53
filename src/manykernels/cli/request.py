"""Options of a command, from the command line and from a TOML file with the same fields.

Options on the command line take precedence. Paths in the TOML file are relative to it.
"""

from __future__ import annotations

import ast
import codecs
import difflib
import inspect
import math
import os
import re
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sklearn.metrics import get_scorer_names

from .. import kernels as kernel_classes
from ..kernels import Kernel
from ..metrics import SCORERS
from .console import UsageError
from .files import is_readable

# -------------------------------------------------------------------------------------------------
# Views as text: ``name=file``, ``name=file:columns``, ``name=file:columns:kernel``.
#
# A kernel is the name of a class of :mod:`manykernels.kernels`, in upper or lower case, optionally
# with parameters: ``rbf``, ``rbf(gamma=0.5)``. Parameters are literals: numbers, texts, True,
# False or None. They are never evaluated.


# Kernels whose parameters are numbers and texts.
KERNELS: dict[str, type[Kernel]] = {
    name.lower(): getattr(kernel_classes, name)
    for name in (
        *("Linear", "Polynomial", "RBF", "Laplacian", "Cosine", "ChiSquare", "Intersection"),
        *("Categorical", "Jaccard", "Tanimoto", "Spectrum", "Mismatch", "Gapped"),
        *("WeightedDegree", "Molecules"),
    )
}
_HOW = "A view is name=file, name=file:column,column or name=file:rbf(gamma=0.5)"
# A name, optionally with parentheses.
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*(\(.*\))?\s*", re.DOTALL)
# Names of views become names of kernels, in tables and in files: no separators or line ends.
_NAME = re.compile(r"[^\W][\w .+-]*")
# Largest number of characters of a kernel; parsing a longer text could exhaust the stack.
_LONGEST = 200


@dataclass(frozen=True)
class ViewRequest:
    """A view: name, file, columns (None: all) and kernels as texts (empty: default kernels)."""

    name: str
    file: Path
    columns: tuple[str, ...] | None = None
    texts: tuple[str, ...] = ()

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(map(kernel_of, self.texts))


def view_of(text: str) -> ViewRequest:
    """Parse the value of ``--view``."""
    name, equals, rest = text.partition("=")
    if not equals or not rest:
        raise UsageError(f"--view {text!r} has no file. {_HOW}.")
    file, *parts = _parts(rest)
    columns, kernels = None, []
    for position, part in enumerate(parts):
        if _is_kernel(part):
            kernel_of(part)  # raises if there is none
            kernels.append(part)
        elif position == 0:
            columns = tuple(column.strip() for column in part.split(","))
        else:
            raise UsageError(
                f"--view {text!r}: {part!r} is not a kernel; there are {', '.join(KERNELS)}. "
                f"Columns come first, separated by commas.{similar_kernel(part)}"
            )
    if columns is not None and "" in columns:
        raise UsageError(f"--view {text!r} has an empty column name. {_HOW}.")
    path = Path(file) if Path(file).exists() else Path(file.strip())
    return ViewRequest(checked_name(name.strip()), path, columns, tuple(kernels))


def checked_name(name: str) -> str:
    """Return the name of a view, or raise if it is invalid."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a view: use letters, digits, '_', '-', '.', '+' and "
            f"spaces. {_HOW}."
        )
    return name


def _parts(text: str) -> list[str]:
    """Split at colons, except those in parentheses or quotes and that of a drive letter."""
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
    """Return whether a part of a view is a kernel, by its name or because it has parameters."""
    call = _CALL.fullmatch(text)
    return call is not None and (call[2] is not None or call[1].lower() in KERNELS)


def kernel_of(text: str) -> Kernel:
    """Return the kernel described by a text such as ``rbf(gamma=0.5)``."""
    name, parameters = _call(text)
    kind = KERNELS.get(name.lower())
    if kind is None:
        raise UsageError(
            f"There is no kernel {name!r}; there are {', '.join(KERNELS)}.{similar_kernel(name)}"
        )
    known = [name for name in inspect.signature(kind).parameters if name != "columns"]
    for parameter in parameters:
        if parameter not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"The kernel {name} has no parameter {parameter!r}; {has}.")
    return kind(**parameters)


def similar_kernel(name: str) -> str:
    """Return a sentence with the kernel that a name may stand for, or an empty text."""
    text = name.strip().lower()
    full = {"gaussian": "rbf", "gauss": "rbf", "chi2": "chisquare", "histogram": "intersection"}
    names = [kernel for kernel in KERNELS if len(text) > 2 and kernel.startswith(text)]
    names = names or difflib.get_close_matches(text, KERNELS, 1, 0.75)
    kernel = full.get(text) or (names[0] if names else None)
    return f" If a kernel is meant, its name is {kernel}." if kernel else ""


def _call(text: str) -> tuple[str, dict[str, Any]]:
    """Parse the name and the parameters of a kernel, without evaluating code."""
    match = _CALL.fullmatch(text)
    if match is None or len(text) > _LONGEST:
        raise UsageError(
            f"{text[:_LONGEST]!r} is not a kernel: write its name, such as rbf(gamma=0.5)."
        )
    if match[2] is None:
        return match[1], {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd literals, which are refused or harmless
            call = ast.parse(text.strip(), mode="eval").body
            if not isinstance(call, ast.Call) or call.args:
                raise ValueError("parameters have names")
            values = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
        if None in values:
            raise ValueError("parameters have names")
        if not all(
            value is None or isinstance(value, str | int | float) for value in values.values()
        ):
            raise ValueError("a parameter is neither a number nor a text")
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise UsageError(
            f"{text!r} is not a kernel: parameters must be numbers or texts and be given by name, "
            "such as rbf(gamma=0.5) or rbf(gamma='median')."
        ) from error
    return match[1], {str(name): value for name, value in values.items()}


TASKS = ("auto", "classification", "regression")
MISSING = ("error", "mean", "conditional")
INDEFINITE = ("error", "clip")
MACHINES = ("fisher", "svm", "logistic", "poisson")
# Fields with a fixed set of values; the first is the default, of machines that of most tasks.
_WORDS = {
    "task": TASKS,
    "missing": MISSING,
    "machine": MACHINES,
    "indefinite": INDEFINITE,
}
_NUMBERS = ("p", "reg", "C")
_RULES = ("case", "number")
_TEXTS = (
    *("index", "time", "event", "entry", "strata", "groups", "sets", "approximation"),
    *("encoding", "transpose", "match_ids", "scoring"),
)
# Fields that name a column of any file, or ``file:column``. There may be several targets, and
# `event` may go on with ``=value``.
_COLUMNS = ("target", "time", "event", "entry", "strata", "groups")
#: Fields that are options of commands, besides the views.
OPTIONS = (*_WORDS, *_NUMBERS, *_TEXTS, "target", "impute")
_VIEW = ("file", "columns", "kernels")
# Largest size of a specification in bytes; a longer file is something else.
_LONGEST_SPEC = 2**20


@dataclass(frozen=True)
class Column:
    """A column that is no feature.

    `role` is the option that names it, and `file` the file that has it; None if any may have it.
    `value` is that of an observed event, with the role "event"; None if it is True or 1.
    """

    role: str
    name: str
    file: Path | None = None
    value: str | None = None

    def __str__(self) -> str:
        """Return the value of the option, as it is written on the command line."""
        place = "" if self.file is None else f"{self.file}:"
        return f"{place}{self.name}" + ("" if self.value is None else f"={self.value}")

    def below(self, folder: Path) -> Column:
        """Return the column with a file whose path is relative to a folder."""
        return self if self.file is None else replace(self, file=folder / self.file)


@dataclass(frozen=True)
class Request:
    """Views, index, columns and method of a command.

    `columns` are the targets, or `time` and `event` for survival times, and others that are no
    features. `machine` is None for the default of the task. `sets` is the view that the gene sets
    of `sets_file` belong to. `p`, `reg` and `C` are the values to try; None for the defaults.
    `scoring` are names of scores. `encoding` is that of text files; None if it is detected.
    `transposed` are the files with a column per sample. `match_ids` are rules by which labels are
    changed before they are compared.
    """

    views: tuple[ViewRequest, ...]
    index: str | None = None
    columns: tuple[Column, ...] = ()
    sets: str | None = None
    sets_file: Path | None = None
    missing: str = "error"
    indefinite: str = "error"
    impute: bool = False
    task: str = "auto"
    machine: str | None = None
    p: tuple[float, ...] | None = None
    reg: tuple[float, ...] | None = None
    C: tuple[float, ...] | None = None
    approximation: str = "exact"
    scoring: tuple[str, ...] = ()
    encoding: str | None = None
    transposed: frozenset[Path] = frozenset()
    match_ids: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        views: Sequence[str],
        spec: Path | None,
        noted: tuple[dict[str, Any], Path] | None = None,
        **options: Any,
    ) -> Request:
        """Combine options, None where they were not given, with a specification.

        In place of a file it may be `noted` in a model: the notes, and the path of the model.
        """
        fields, by_name = ({}, {}) if spec is None else _specified(_parsed(spec), spec)
        if noted is not None:
            fields, by_name = _specified(*noted)
        fields |= {name: value for name, value in options.items() if value is not None}
        parsed = [view_of(text) for text in views]
        names = [view.name for view in parsed]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"There are several views {name!r}: their names must differ.")
        by_name |= {view.name: view for view in parsed}
        if not by_name:
            raise UsageError("There is no view: pass --view name=file, once for every view.")
        fields = _checked(fields)
        if "sets" in fields:
            fields["sets"], fields["sets_file"] = _sets(fields["sets"], list(by_name.values()))
        transpose = fields.pop("transpose", None)
        request = cls(tuple(by_name.values()), **fields)
        return request if transpose is None else request._with_transposed(transpose)

    def _with_transposed(self, text: str) -> Request:
        """Return the request with transposed files: ``all``, or those of some views."""
        if text == "all":
            return replace(self, transposed=frozenset(self.files))
        by_name = {view.name: view.file for view in self.views}
        names = [name.strip() for name in text.split(",")]
        for name in names:
            if name not in by_name:
                raise UsageError(
                    f"--transpose {text!r}: there is no view {name!r}, only {', '.join(by_name)}. "
                    "Name views, separated by commas, or write all."
                )
        return replace(self, transposed=frozenset(by_name[name] for name in names))

    def with_target(self) -> Request:
        """Return self, or raise if there is no target."""
        if not self.predicted:
            raise UsageError(
                "There is no target: pass --target with the name of its column, or --time and "
                "--event for survival times."
            )
        for role in ("entry", "strata"):
            if self.targets and self.column(role) is not None:
                raise UsageError(
                    f"--{role} is for survival times: pass --time and --event, not --target."
                )
        return self

    def column(self, role: str) -> Column | None:
        """Return the column of a role; None if there is none."""
        return next((column for column in self.columns if column.role == role), None)

    @property
    def targets(self) -> list[Column]:
        """The columns to predict, other than survival times."""
        return [column for column in self.columns if column.role == "target"]

    @property
    def predicted(self) -> str:
        """The names of the columns to predict, as text; empty if there are none."""
        predicted = [
            column.name for column in self.columns if column.role in ("target", "time", "event")
        ]
        few = predicted if len(predicted) < 4 else predicted[:3]
        more = f" and {len(predicted) - 3} more" if len(predicted) > len(few) else ""
        return f"{', '.join(map(repr, few))}{more}" if more else " and ".join(map(repr, few))

    def notes(self, folder: Path) -> dict[str, Any]:
        """Return the specification of the samples for a model in a folder, as plain values.

        Paths are relative to the folder.
        """

        def relative(file: Path) -> Path:
            return Path(os.path.relpath(file, folder))

        views = {
            view.name: {
                "file": relative(view.file).as_posix(),
                "columns": list(view.columns or ()),
                "kernels": list(view.texts),
            }
            for view in self.views
        }
        notes: dict[str, Any] = {"task": self.task, "missing": self.missing, "impute": self.impute}
        notes |= {"indefinite": self.indefinite, "index": self.index, "encoding": self.encoding}
        notes |= {"machine": self.machine if self.machine == "poisson" else None}
        if self.match_ids:
            notes["match_ids"] = ",".join(self.match_ids)
        if self.transposed:
            names = [view.name for view in self.views if view.file in self.transposed]
            notes["transpose"] = "all" if len(names) == len(views) else ",".join(names)
        if self.sets_file is not None:
            notes["sets"] = f"{self.sets}={relative(self.sets_file).as_posix()}"
        for role in _COLUMNS:
            texts = [
                str(column if column.file is None else replace(column, file=relative(column.file)))
                for column in self.columns
                if column.role == role
            ]
            if texts:
                notes[role] = texts if role == "target" else texts[0]
        return {
            **{name: value for name, value in notes.items() if value is not None},
            "views": views,
        }

    @property
    def files(self) -> list[Path]:
        """All input files."""
        others = [*(column.file for column in self.columns), self.sets_file]
        return [view.file for view in self.views] + [file for file in others if file is not None]

    def by(self, machine: str) -> Request:
        """Return a request for `machine`, without the options of other machines."""
        return replace(
            self,
            machine=machine,
            reg=None if machine == "svm" else self.reg,
            C=self.C if machine == "svm" else None,
            approximation=self.approximation if machine == "fisher" else "exact",
        )


# -- fields ----------------------------------------------------------------------------------


def _checked(fields: dict[str, Any]) -> dict[str, Any]:
    """Convert and check the values of fields."""
    checked = dict(fields)
    for name, words in _WORDS.items():
        if name in fields and fields[name] not in words:
            *others, last = words
            choices = f"{', '.join(others)} or {last}"
            raise UsageError(f"{name} must be {choices}, not {fields[name]!r}.")
    for name in _NUMBERS:
        if name in fields:
            checked[name] = numbers_of(fields[name], name)
            if name == "p" and any(number < 1.0 for number in checked[name] or ()):
                raise UsageError(
                    "p must be at least 1: 1 (sparse weights), 2, inf (equal weights) or a number "
                    f"between; got {fields[name]!r}."
                )
            if name != "p" and any(number <= 0.0 for number in checked[name] or ()):
                raise UsageError(f"{name} must be positive; got {fields[name]!r}.")
    columns = []
    for role in _COLUMNS:
        texts = checked.pop(role, [])
        texts = [texts] if isinstance(texts, str) else texts
        columns += [parsed_column(text, role) for text in texts]
    for j, column in enumerate(columns):
        for other in columns[:j]:
            if column.name == other.name and column.role == other.role:
                raise UsageError(f"The target {column.name!r} is passed twice.")
            if column.name == other.name:
                raise UsageError(
                    f"{column.role} and {other.role} are the same column, {column.name!r}."
                )
    checked["columns"] = tuple(columns)
    _check_survival(fields)
    if "encoding" in fields:
        checked["encoding"] = _encoding(fields["encoding"])
    if "match_ids" in fields:
        checked["match_ids"] = tuple(rule.strip() for rule in fields["match_ids"].split(","))
        if not set(checked["match_ids"]) <= set(_RULES):
            raise UsageError(
                f"--match-ids must be case, number or case,number, not {fields['match_ids']!r}. "
                "(Spaces around ids are never compared.)"
            )
    if "scoring" in fields:
        checked["scoring"] = _scores(fields["scoring"])
    machine = checked.get("machine", MACHINES[0])
    if machine == "poisson" and checked.get("task", "auto") != "auto":
        raise UsageError(f"--machine poisson predicts counts, not a {checked['task']}: drop task.")
    if checked.get("C") is not None and machine != "svm":
        raise UsageError(f"C is an option of --machine svm; with --machine {machine}, use reg.")
    if checked.get("reg") is not None and machine == "svm":
        raise UsageError("reg is an option of --machine fisher; with --machine svm, use C.")
    return checked


def _encoding(name: str) -> str:
    """Return the name of an encoding of text, or raise if there is none of this name."""
    try:
        b"".decode(name)  # raises for codecs of other things than text
        codec = codecs.lookup(name)
    except (LookupError, ValueError) as error:
        raise UsageError(
            f"There is no encoding {name!r}; common ones are utf-8, utf-16, latin-1, cp1252."
        ) from error
    # UTF-8 files may begin with a byte-order mark.
    return "utf-8-sig" if codec.name == "utf-8" else name


def _scores(text: str) -> tuple[str, ...]:
    """Return names of scores, separated by commas, or raise if there is none of a name."""
    names = tuple(name.strip() for name in text.split(","))
    known = [*SCORERS, *get_scorer_names()]
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name.lower(), known, 1, 0.6)
            close = [*close, *(other for other in known if name and name.lower() in other)][:4]
            advice = f"Did you mean {' or '.join(dict.fromkeys(close))}? " if close else ""
            raise UsageError(
                f"--scoring {name!r}: there is no such score. {advice}Names are those of "
                "scikit-learn, such as balanced_accuracy, roc_auc, neg_log_loss, r2 and "
                f"neg_mean_absolute_error, and {', '.join(SCORERS)}."
            )
    return names


def _check_survival(fields: Mapping[str, Any]) -> None:
    """Raise if the options for survival times are incomplete, or others contradict them."""
    given = [name for name in ("time", "event") if name in fields]
    if not given:
        return
    if len(given) == 1:
        absent, contents = {
            "time": ("event", "tells whether the event was observed"),
            "event": ("time", "has the time of the event or of the last observation"),
        }[given[0]]
        raise UsageError(f"--{given[0]} needs --{absent}, the column that {contents}.")
    if "target" in fields:
        raise UsageError("Pass either --target, or --time and --event for survival times.")
    for name in ("task", "machine", "C"):
        if fields.get(name, "auto") != "auto":
            raise UsageError(
                f"--{name} does not apply to --time and --event, for which there is one kind of "
                "model: remove it."
            )


def numbers_of(value: Any, name: str) -> tuple[float, ...] | None:
    """Parse numbers from a text such as ``1,2,inf`` or from TOML; None for ``auto``."""
    if value == "auto":
        return None
    parts = value.split(",") if isinstance(value, str) else value
    parts = parts if isinstance(parts, list) else [parts]
    try:
        if not parts or any(isinstance(part, bool) for part in parts):
            raise ValueError
        numbers = tuple(float(part) for part in parts)
        if any(map(math.isnan, numbers)):
            raise ValueError
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(
            f"{name} must be auto or one or more numbers, such as 2 or 1,2,inf; got {value!r}."
        ) from error
    return numbers


def parsed_column(text: str, role: str) -> Column:
    """Parse ``column``, ``file:column`` or, of an event, ``column=value``."""
    value = None
    if role == "event" and "=" in text:
        rest, _, value = text.partition("=")
        if not value:
            raise UsageError(
                f"--event {text!r} ends with '=': write the value of an observed event behind it."
            )
        text = rest
    file, colon, name = text.rpartition(":")
    if colon and name and is_readable(Path(file)):
        return Column(role, name, Path(file), value)
    if not text:
        raise UsageError(f"{role} must be the name of a column, or file:column.")
    return Column(role, text, None, value)


def _sets_parts(text: str) -> tuple[str, str]:
    """Divide ``view=file`` at the sign; the view is empty if there is none."""
    name, equals, file = text.partition("=")
    return (name, file) if equals and _NAME.fullmatch(name) else ("", text)


def _sets(text: str, views: Sequence[ViewRequest]) -> tuple[str, Path]:
    """Parse ``view=file.gmt``, or ``file.gmt`` if there is one view."""
    name, file = _sets_parts(text)
    names = [view.name for view in views]
    if not file:
        raise UsageError(f"--sets {text!r} has no file: write view=file.gmt.")
    if not name and len(names) > 1:
        raise UsageError(
            f"--sets {text!r} does not say which view the sets belong to: write "
            f"--sets {names[0]}={file}."
        )
    name = name or names[0]
    if name not in names:
        raise UsageError(f"--sets {text!r}: there is no view {name!r}, only {', '.join(names)}.")
    (view,) = [view for view in views if view.name == name]
    if len(view.kernels) > 1:
        raise UsageError(f"--sets takes one kernel for every set: view {name!r} has several.")
    return name, Path(file)


# -- TOML ------------------------------------------------------------------------------------


def _parsed(path: Path) -> dict[str, Any]:
    """Return the contents of a specification file."""
    try:
        content = path.read_bytes()
        if len(content) > _LONGEST_SPEC:
            raise ValueError(f"it is longer than {_LONGEST_SPEC} bytes")
        return tomllib.loads(content.decode())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"The specification {str(path)!r} cannot be read: {error}") from error


def _specified(
    fields: dict[str, Any], path: Path
) -> tuple[dict[str, Any], dict[str, ViewRequest]]:
    """Return the fields and views of a specification in the file `path`."""
    fields, folder = dict(fields), path.parent
    known = (*OPTIONS, "views")
    _refuse_unknown(fields, known, f"The specification {path.name!r}")
    for name in (*_WORDS, *_TEXTS):
        _check_type(fields.get(name, ""), str, f"{name} in {path.name!r}", "a text")
    if "target" in fields:
        fields["target"] = _texts(fields["target"], f"target in {path.name!r}")
    _check_type(fields.get("impute", False), bool, f"impute in {path.name!r}", "true or false")
    views = fields.pop("views", {})
    _check_type(views, dict, f"views in {path.name!r}", "a table, such as [views.genes]")
    for role in _COLUMNS:
        if role in fields:
            texts = fields[role] if role == "target" else [fields[role]]
            columns = [parsed_column(text, role) for text in texts]
            fields[role] = [str(column.below(folder)) for column in columns]
    if "sets" in fields:
        view, sets = _sets_parts(fields["sets"])
        fields["sets"] = (f"{view}=" if view else "") + str(path.parent / sets)
    return fields, {name: _view(name, entry, path) for name, entry in views.items()}


def _view(name: str, entry: Any, path: Path) -> ViewRequest:
    where = f"views.{name} in {path.name!r}"
    if isinstance(entry, str):
        entry = {"file": entry}
    _check_type(entry, dict, where, 'a file, or a table with file = "…"')
    _refuse_unknown(entry, _VIEW, where)
    if "file" not in entry:
        raise UsageError(f"{where} has no file.")
    _check_type(entry["file"], str, f"file of {where}", "a text")
    columns, kernels = (_texts(entry.get(key, []), f"{key} of {where}") for key in _VIEW[1:])
    for kernel in kernels:
        kernel_of(kernel)  # raises if there is none
    return ViewRequest(
        checked_name(name),
        path.parent / entry["file"],
        tuple(columns) or None,
        tuple(kernels),
    )


def _texts(value: object, name: str) -> list[str]:
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise UsageError(f"{name} must be a list of texts, not {value!r}.")
    return entries


def _check_type(value: object, expected: type, name: str, description: str) -> None:
    if not isinstance(value, expected):
        raise UsageError(f"{name} must be {description}, not {value!r}.")


def _refuse_unknown(entries: Mapping[str, Any], known: Sequence[str], owner: str) -> None:
    for name in entries:
        if name not in known:
            raise UsageError(f"{owner} has an unknown key {name!r}; known are {', '.join(known)}.")

"""Fingerprints of methods and data: the same for the same contents, in every process.

A finished part of a comparison is found again by its fingerprint. ``pickle`` alone would not do:
it depends on which objects are shared and in which order sets are stored. So the contents are
walked, and every value is written with its kind and its length, so that no two contents look the
same. Objects of other kinds are taken apart as pickle does it.

A function is known by its code, its defaults and what it closes over; a class by its name.
"""

from __future__ import annotations

import copyreg
import functools
import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import sklearn
from scipy import sparse

from ..kernels import KernelStack, Views
from ..kernels.tables import is_frame
from ..utils.files import replacing
from ..utils.sklearn import warn_caller
from .result import Cell


def fingerprint(*contents: Any) -> str:
    """Hexadecimal digest of values of any kind.

    Raises
    ------
    TypeError
        For what cannot be told apart, such as an open file.
    """
    walk = _Walk()
    walk.add(contents)
    return walk.digest.hexdigest()


class _Walk:
    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        # Objects being walked: one that contains itself is not walked again.
        self._inside: set[int] = set()

    def write(self, kind: str, content: Any = b"") -> None:
        content = memoryview(content)
        self.digest.update(f"{kind}:{content.nbytes}:".encode())
        self.digest.update(content)

    def add(self, value: Any) -> None:
        if isinstance(value, np.generic) and value.dtype.kind in "biufcSU":
            value = value.item()
        if value is None or isinstance(value, bool | int | float | complex):
            self.write(type(value).__name__, repr(value).encode())
        elif isinstance(value, str):
            self.write("str", value.encode("utf-8", "surrogatepass"))
        elif isinstance(value, bytes | bytearray):
            self.write("bytes", value)
        elif isinstance(value, np.ndarray):
            self._add_array(value)
        elif id(value) in self._inside:
            self.write("again")
        else:
            self._inside.add(id(value))
            self._add_object(value)
            self._inside.remove(id(value))

    def _parts(self, kind: str, *parts: Any) -> None:
        self.write(kind, str(len(parts)).encode())
        for part in parts:
            self.add(part)

    def _add_array(self, array: np.ndarray) -> None:
        # Objects, and strings of any length, are stored elsewhere.
        if array.dtype.hasobject or array.dtype.kind == "T":
            self._parts("array of objects", array.shape, *array.ravel().tolist())
        else:
            self.write("array", f"{array.dtype.str} {array.dtype} {array.shape}".encode())
            self.write("entries", np.ascontiguousarray(array).reshape(-1).view(np.uint8))

    def _add_object(self, value: Any) -> None:
        if isinstance(value, list | tuple):
            self._parts(type(value).__name__, *value)
        elif isinstance(value, KernelStack):
            self._add_stack(value)
        elif isinstance(value, Views):
            self._parts("views", value.labels, value.present, *value.items())
        elif sparse.issparse(value):
            table = sparse.csr_array(value)
            table.sum_duplicates()
            self._parts("sparse", table.shape, table.indptr, table.indices, table.data)
        elif is_frame(value):
            index = np.asarray(value.index) if hasattr(value, "index") else None
            columns, kinds = list(value.columns), [str(kind) for kind in value.dtypes]
            self._parts("frame", columns, kinds, index, value.to_numpy())
        elif isinstance(value, Mapping):
            self._parts("mapping", *value.items())
        elif isinstance(value, set | frozenset):
            self._parts("set", *sorted(map(fingerprint, value)))
        elif isinstance(value, type | BuiltinFunctionType):
            self._parts("name", value.__module__, value.__qualname__)
        elif isinstance(value, FunctionType | MethodType | CodeType | functools.partial):
            self._add_callable(value)
        elif hasattr(value, "get_params"):
            self._parts("estimator", type(value), sorted(value.get_params(deep=False).items()))
        else:
            self._parts("object", type(value), *_reduced(value))

    def _add_stack(self, stack: KernelStack) -> None:
        samples = stack.row_samples, stack.col_samples
        self._parts("stack", stack.names, stack.shape, stack.views, stack.features, samples)
        for name in stack.names:
            self.add(stack.kernel(name))

    def _add_callable(self, value: Any) -> None:
        if isinstance(value, CodeType):
            self._parts("code", value.co_code, value.co_consts, value.co_names, value.co_varnames)
        elif isinstance(value, MethodType):
            self._parts("method", value.__func__, value.__self__)
        elif isinstance(value, functools.partial):
            self._parts("partial", value.func, value.args, value.keywords)
        else:
            closed = [cell.cell_contents for cell in value.__closure__ or ()]
            self._parts("function", value.__code__, value.__defaults__, value.__kwdefaults__)
            self._parts("closure", *closed)


def _reduced(value: Any) -> list[Any]:
    """What pickle would make an object of: how it is made, its state and its items."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        parts: Any = value.__reduce_ex__(2) if reduce is None else reduce(value)
    except Exception as error:
        raise TypeError(
            f"A {type(value).__name__} cannot be written down, so that it would not be known "
            f"again: {error}."
        ) from error
    if isinstance(parts, str):
        return [parts]
    made, state = parts[:2], parts[2] if len(parts) > 2 else None
    # The order in which attributes were set does not matter, that of items does.
    state = sorted(state.items()) if isinstance(state, dict) else state
    return [made, state, *([] if items is None else list(items) for items in parts[3:])]


# -- Finished cells in a folder: a JSON file for each, found again by its fingerprint -------------


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

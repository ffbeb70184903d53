"""Storage of finished cells of a comparison, by fingerprints of methods and data.

Fingerprints depend on contents only, and are the same in every process. ``pickle`` does not
guarantee this: its output depends on shared objects and on the order of sets. Therefore the
contents are traversed, and every value is hashed with its type and its length, so that different
contents have different fingerprints. Objects of other types are decomposed as by pickle.

A function is identified by its code, its defaults and its closure; a class by its name.
"""

import copyreg
import functools
import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, fields
from os import PathLike
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import sklearn
from scipy import sparse

from ..kernels import KernelStack, Views
from ..kernels.tables import is_frame
from ..metrics.comparison import Split
from ..utils.files import replacing
from ..utils.sklearn import warn_caller
from .result import Cell


def fingerprint(*contents: object) -> str:
    """Return the hexadecimal digest of values of any type.

    Raises
    ------
    TypeError
        For objects without contents that can be hashed, such as an open file.
    """
    walk = _Walk()
    walk.add(contents)
    return walk.digest.hexdigest()


class _Walk:
    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        # Objects being traversed, to stop at objects that contain themselves.
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

    def _add_all(self, kind: str, *values: Any) -> None:
        self.write(kind, str(len(values)).encode())
        for value in values:
            self.add(value)

    def _add_array(self, array: np.ndarray) -> None:
        # The buffer of objects and of variable-length strings contains pointers only.
        if array.dtype.hasobject or array.dtype.kind == "T":
            self._add_all("array of objects", array.shape, *array.ravel().tolist())
        else:
            self.write("array", f"{array.dtype.str} {array.dtype} {array.shape}".encode())
            self.write("entries", np.ascontiguousarray(array).reshape(-1).view(np.uint8))

    def _add_object(self, value: Any) -> None:
        if isinstance(value, list | tuple):
            self._add_all(type(value).__name__, *value)
        elif isinstance(value, KernelStack):
            samples = value.row_samples, value.col_samples
            self._add_all("stack", value.names, value.shape, value.views, value.features, samples)
            for name in value.names:
                self.add(value.kernel(name))
        elif isinstance(value, Views):
            self._add_all("views", value.labels, value.present, *value.items())
        elif sparse.issparse(value):
            table = sparse.csr_array(value)
            table.sum_duplicates()
            self._add_all("sparse", table.shape, table.indptr, table.indices, table.data)
        elif is_frame(value):
            index = np.asarray(value.index) if hasattr(value, "index") else None
            columns, kinds = list(value.columns), [str(kind) for kind in value.dtypes]
            self._add_all("frame", columns, kinds, index, value.to_numpy())
        elif isinstance(value, Mapping):
            self._add_all("mapping", *value.items())
        elif isinstance(value, set | frozenset):
            self._add_all("set", *sorted(map(fingerprint, value)))
        elif isinstance(value, type | BuiltinFunctionType):
            self._add_all("name", value.__module__, value.__qualname__)
        elif isinstance(value, FunctionType | MethodType | CodeType | functools.partial):
            self._add_callable(value)
        elif hasattr(value, "get_params"):
            self._add_all("estimator", type(value), sorted(value.get_params(deep=False).items()))
        else:
            self._add_all("object", type(value), *_reduced(value))

    def _add_callable(self, value: Any) -> None:
        if isinstance(value, CodeType):
            self._add_all(
                "code", value.co_code, value.co_consts, value.co_names, value.co_varnames
            )
        elif isinstance(value, MethodType):
            self._add_all("method", value.__func__, value.__self__)
        elif isinstance(value, functools.partial):
            self._add_all("partial", value.func, value.args, value.keywords)
        else:
            closed = [cell.cell_contents for cell in value.__closure__ or ()]
            self._add_all("function", value.__code__, value.__defaults__, value.__kwdefaults__)
            self._add_all("closure", *closed)


def _reduced(value: Any) -> list[Any]:
    """Decompose an object as by pickle: constructor, state and items."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        parts: Any = value.__reduce_ex__(2) if reduce is None else reduce(value)
    except Exception as error:
        raise TypeError(
            f"A {type(value).__name__} has no fingerprint, since it cannot be pickled: {error}."
        ) from error
    if isinstance(parts, str):
        return [parts]
    constructor, state = parts[:2], parts[2] if len(parts) > 2 else None
    # The order of attributes does not matter, that of items does.
    state = sorted(state.items()) if isinstance(state, dict) else state
    return [constructor, state, *([] if items is None else list(items) for items in parts[3:])]


# -- Folder of finished cells: a JSON file for each, named by its fingerprint ---------------------


# Version of the files. It is part of the fingerprint, so that files of other versions are ignored.
_FORMAT = 1


def cell_folder(path: str | PathLike[str]) -> Path:
    """Return the folder of finished cells; create it if it does not exist."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"path must be a folder for finished cells; {str(path)!r} cannot be created or "
            f"used: {error}."
        ) from error
    return folder.resolve()


def key_of(method: str, data: str, split: Split, scoring: str) -> str:
    """Return the fingerprint of a cell, from those of its parts and the versions."""
    package = sys.modules[__name__.partition(".")[0]]
    versions = package.__version__, sklearn.__version__
    return fingerprint(_FORMAT, versions, method, data, split, scoring)


def read_cell(file: Path) -> Cell | None:
    """Return a finished cell, or None; warn if its file cannot be read."""
    if not file.exists():
        return None
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["key"] != file.stem:
            raise ValueError("it belongs to another cell")
        return _converted(content["cell"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        warn_caller(
            f"{file} is damaged ({type(error).__name__}: {error}); the cell is computed again.",
            RuntimeWarning,
        )
        return None


def write_cell(file: Path, cell: Cell, **remarks: object) -> None:
    """Write a finished cell, with remarks for readers of the file."""
    content = {**remarks, "key": file.stem, "cell": _plain(asdict(cell))}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode()
    with replacing(file, len(text)) as stream:
        stream.write(text)


def _plain(value: object) -> object:
    """Replace NaN and infinite numbers, which JSON lacks, by their names."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _converted(content: dict[str, Any]) -> Cell:
    """Return a cell, with all fields converted to their types."""
    if sorted(content) != sorted(entry.name for entry in fields(Cell)):
        raise ValueError(f"it has the fields {', '.join(content)}")
    if not content["scores"] or content["failure"] is not None:
        raise ValueError("it has no scores")
    optional = {"n_kernels": int, "n_used": int, "n_support": int, "rel_gap": float}
    return Cell(
        scores={str(name): float(score) for name, score in content["scores"].items()},
        unscored={str(name): str(reason) for name, reason in content["unscored"].items()},
        fit_time=float(content["fit_time"]),
        predict_time=float(content["predict_time"]),
        converged=content["converged"],
        **{
            name: None if content[name] is None else convert(content[name])
            for name, convert in optional.items()
        },
    )

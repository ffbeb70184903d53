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
from collections.abc import Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
from scipy import sparse

from ..kernels import KernelStack, Views
from ..kernels.tables import is_frame


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

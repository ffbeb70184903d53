"""A model with everything in it that a file cannot hold replaced by what stands for it, and back.

Both are one walk through the object: through dicts, lists, tuples and the attributes of objects.
What holds nothing to be replaced stays the same object, and what is met twice is replaced once, so
that a table shared by parts of a model is also shared in the file and by the loaded model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..kernels._stored import StoredArray
from .archive import ModelFileError
from .frames import Frame, Labels, Missing, is_na, library_of
from .plain import LONG, Arrays, Entries, Objects, Pairs, Stored, are_plain
from .trusted import functions, path_of

# Where scikit-learn keeps callbacks, which concern fits only and hold displays and threads; and
# moments of the rows seen so far, to which partial_fit adds: far larger than the model.
_OF_FITS = ("_skl_callbacks", "_skl_callbacks_to_teardown", "_stream")
# What stands for parts of a model, besides objects and pairs, which may hold other such parts.
_STAND_INS = (Arrays, Entries, Frame, Labels, Missing, Stored)
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, partial, type(np.sum))


def packed(model: Any) -> Any:
    """The same model as skops can write it; ModelFileError names what cannot be stored."""
    walk = _Walk(_stand_in)
    # The union first, in which every kernel has a name.
    walk.of(getattr(model, "union_", None), "")
    return walk.of(model, type(model).__name__)


def restored(model: Any) -> Any:
    """The model that `packed` has made this of."""
    return _Walk(_original).of(model, "")


def restored_size(model: Any) -> int:
    """Bytes that what `packed` has put in the place of parts of a model can take as these."""
    sizes: list[int] = []

    def counted(value: Any, walk: _Walk) -> Any:
        if isinstance(value, (*_STAND_INS, Objects, Pairs)):
            sizes.append(value.n_bytes)
        return value

    _Walk(counted).of(model, "")
    return sum(sizes)


class _Walk:
    """A walk that replaces what `replace` replaces; it returns anything else as it is."""

    def __init__(self, replace: Callable[[Any, _Walk], Any]) -> None:
        self._replace = replace
        # What objects have become, by their addresses; the objects, so that these stay theirs.
        self._done: dict[int, tuple[Any, Any]] = {}
        self._open: set[int] = set()
        self._path: list[str] = []

    def of(self, value: Any, step: str) -> Any:
        """What a value becomes, to which `step` leads from the one before."""
        if id(value) in self._done:
            return self._done[id(value)][1]
        if id(value) in self._open:
            raise ModelFileError(f"{self.place} refers to itself, which files do not hold")
        self._open.add(id(value))
        self._path.append(step)
        new = self._replace(value, self)
        new = self._rebuilt(value) if new is value else new
        self._path.pop()
        self._open.discard(id(value))
        self._done[id(value)] = value, new
        return new

    def inside(self, value: Any) -> Any:
        """What one of many entries becomes."""
        return self.of(value, "")

    @property
    def place(self) -> str:
        """Where the walk is: in which kernel, or on which way from the estimator."""
        kernel = next((step for step in reversed(self._path) if step.startswith("kernel ")), None)
        return kernel or ".".join(filter(None, self._path)) or "the model"

    def _rebuilt(self, value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            new = {key: self.of(item, f"{key}") for key, item in value.items()}
            return new if _differ(new.values(), value.values()) else value
        if kind is list or isinstance(value, tuple):
            items = [self.of(item, step) for item, step in zip(value, _steps(value), strict=True)]
            if not _differ(items, value):
                return value
            return items if kind is list else tuple(items) if kind is tuple else kind(*items)
        state = _state(value)
        if state is None:
            return value
        new = {name: self.of(item, name) for name, item in state.items()}
        if not _differ(new.values(), state.values()):
            return value
        return _made(kind, new)


def _steps(values: Any) -> list[str]:
    """How a message calls the items of a list or tuple; a pair is a name and what has it."""
    if len(values) == 2 and isinstance(values[0], str):
        return ["", f"kernel {values[0]!r}"]
    return [""] * len(values)


def _made(kind: Any, attributes: dict[str, Any]) -> Any:
    """An object with these attributes; nothing of its class is called."""
    twin = object.__new__(kind)
    twin.__dict__.update(attributes)
    return twin


def _differ(new: Any, old: Any) -> bool:
    return any(one is not other for one, other in zip(new, old, strict=True))


def _state(value: Any) -> dict[str, Any] | None:
    """The attributes of an object that is its attributes and nothing else."""
    kind = type(value)
    if isinstance(value, type | np.ndarray | np.generic) or not hasattr(value, "__dict__"):
        return None
    if not isinstance(value, BaseEstimator) and kind.__reduce__ is not object.__reduce__:
        return None
    if kind.__getstate__ in (object.__getstate__, BaseEstimator.__getstate__):
        return vars(value)
    # Parts of our models leave out what they can make again; others are left to skops.
    own = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
    return value.__getstate__() if own else None


# -- storing -------------------------------------------------------------------------------


def _stand_in(value: Any, walk: _Walk) -> Any:
    """What stands for a value in a file; the value itself if it may stay or has to be walked."""
    if isinstance(value, _FUNCTIONS):
        return _known_function(value, walk.place)
    if library_of(value) is not None:
        try:
            return Frame.of(value) if hasattr(value, "dtypes") else Labels.of(value, "labels")
        except ModelFileError as error:
            raise ModelFileError(f"{walk.place}: {error}") from error
    if is_na(value):
        return Missing()
    if isinstance(value, StoredArray):
        return Stored(walk.inside(value.array))
    if isinstance(value, np.ndarray):
        return _array(value, walk)
    if type(value) is dict:
        odd = any(type(key) is not str for key in value)
        long = len(value) > LONG and are_plain(list(value.values()))
        return Pairs.of(value, walk.inside) if odd or long else value
    if type(value) is list and len(value) > LONG and are_plain(value):
        return Entries.of(value)
    if type(value) is list and len(value) > LONG and Arrays.can_hold(value):
        return Arrays.of(value)
    if isinstance(value, slice):
        ends = (value.start, value.stop, value.step)
        return slice(*(int(end) if isinstance(end, np.integer) else end for end in ends))
    if hasattr(value, "__dict__") and not isinstance(value, type):
        _check_importable(type(value), walk.place)
    if isinstance(value, BaseEstimator) and any(name in vars(value) for name in _OF_FITS):
        return walk.inside(_without_fits(value))
    return value


def _without_fits(estimator: Any) -> Any:
    kept = {name: one for name, one in vars(estimator).items() if name not in _OF_FITS}
    return _made(type(estimator), kept)


def _array(array: np.ndarray, walk: _Walk) -> Any:
    if array.dtype == object:
        return Objects.of(array, walk.inside)
    if array.dtype.hasobject:
        raise ModelFileError(f"{walk.place} has an array of the type {array.dtype}")
    # An array that is mapped from a file is stored with its values, as any other.
    return array if type(array) is np.ndarray else np.array(array, subok=False)


def _known_function(function: Any, place: str) -> Any:
    if not isinstance(function, partial | MethodType) and path_of(function) in functions():
        return function
    name = getattr(function, "__qualname__", repr(function))
    raise ModelFileError(
        f"{place} holds the function {name}, which cannot be stored safely, since loading it "
        "would run code that the file names. Make it a class (of kernels: a subclass of Kernel) "
        "in a module of your own and load the model with trusted=[...], or pickle the model, for "
        "files that nobody else can write"
    )


def _check_importable(kind: type, place: str) -> None:
    """Refuse a class that nobody could find again by its name."""
    found = getattr(sys.modules.get(kind.__module__), kind.__name__, None)
    if found is not kind:
        raise ModelFileError(
            f"{place} is of the class {kind.__qualname__}, which cannot be found in the module "
            f"{kind.__module__}: define it there, not inside of something else"
        )


# -- loading -------------------------------------------------------------------------------


def _original(value: Any, walk: _Walk) -> Any:
    """What a value stands for, or the value itself."""
    if isinstance(value, Objects | Pairs):
        return value.restored(walk.inside)
    if isinstance(value, _STAND_INS):
        return value.restored()
    return value

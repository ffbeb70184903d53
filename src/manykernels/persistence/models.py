"""``save`` and ``load``: fitted models in files that are safe to open."""

from __future__ import annotations

import io
import json
import os
import platform
import sys
from collections.abc import Callable, Collection
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import IO, Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..kernels.operators import StoredArray
from ..utils.files import replacing
from ..utils.sklearn import warn_caller
from ..utils.storable import path_of
from ..utils.versions import __version__
from .archive import (
    ModelFileError,
    json_size,
    limit_of,
    read_archive,
    refuse_larger,
    stored_sparse,
    write_archive,
)
from .plain import (
    LONG,
    Arrays,
    Entries,
    Frame,
    Labels,
    Missing,
    Objects,
    Pairs,
    Stored,
    are_plain,
    is_na,
    library_of,
)
from .trusted import SCHEMA, canonical, check, functions, parsed

# -------------------------------------------------------------------------------------------------
# A model with everything in it that a file cannot hold replaced by what stands for it, and back.
#
# Both are one walk through the object: through dicts, lists, tuples and the attributes of
# objects. What holds nothing to be replaced stays the same object, and what is met twice is
# replaced once, so that a table shared by parts of a model is also shared in the file and by the
# loaded model.


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


#: The version of the format that is written. Files of this and older ones are read.
FORMAT = 1
# The member with the version of the format, and what wrote it.
_HEADER = "manykernels.json"
_PACKAGE = __name__.partition(".")[0]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that is safe to open.

    The file is an archive in the format of `skops <https://skops.readthedocs.io>`_. An older file
    at `path` is replaced once the new one is complete, so that an interruption or a full disk
    leaves the old one as it was. Equal models make equal files. Needs
    ``pip install "manykernels[io]"``.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package, or a :class:`~sklearn.pipeline.Pipeline` with one.
        Its callbacks are not stored. A function, as a kernel or anywhere else, is refused, since
        only running code could restore it. Kernels and transformers of your own classes are
        stored, and have to be named as `trusted` when they are loaded.
    path : str or path-like
        By custom, the name ends with ``.skops``.

    See Also
    --------
    load : Read it again.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import manykernels as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mk.MKSVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "iris.skops"
    ...     mk.save(model, path)
    ...     twin = mk.load(path)
    >>> bool((twin.decision_function(X) == model.decision_function(X)).all())
    True
    """
    skops = _skops()
    if not _is_model(model):
        raise TypeError(
            f"An estimator of {_PACKAGE} can be saved, or a Pipeline with one, not "
            f"{type(model).__name__}."
            + (" Save its best_estimator_." if hasattr(model, "best_estimator_") else "")
        )
    check_is_fitted(model)
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r} for {path.name!r}.")
    try:
        parts = packed(model)
        written = skops.dumps(parts)
    except ModelFileError as error:
        raise ModelFileError(f"{type(model).__name__} cannot be saved: {error}.") from error
    except Exception as error:  # whatever a foreign object raises
        raise ModelFileError(
            f"{type(model).__name__} cannot be saved: skops cannot store a part of it ({error})."
        ) from error
    members = read_archive(io.BytesIO(written), len(written))
    schema = json.loads(members.pop(SCHEMA))
    header = {
        "format": FORMAT,
        "model": path_of(type(model)),
        "python": platform.python_version(),
        "manykernels": __version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "skops": version("skops"),
    }
    numbered, n_unpacked = canonical(schema, members)
    n_bytes = max(n_unpacked, json_size(numbered[SCHEMA]), restored_size(parts))
    archive = _archive({_HEADER: json.dumps(header, indent=1).encode(), **numbered}, n_bytes)
    with replacing(path, archive.getbuffer().nbytes) as file:
        file.write(archive.getbuffer())


def _archive(members: dict[str, bytes], n_bytes: int) -> io.BytesIO:
    """An archive of a model that takes `n_bytes` in memory.

    It is compressed, unless that makes it so short that `load` would refuse to unpack it.
    """
    archive = io.BytesIO()
    write_archive(archive, members, compress=True)
    n_bytes = max(n_bytes, sum(map(len, members.values())))
    if n_bytes <= limit_of(archive.getbuffer().nbytes):
        return archive
    plain = {
        name: stored_sparse(content) if name.endswith(".npz") else content
        for name, content in members.items()
    }
    archive = io.BytesIO()
    write_archive(archive, plain, compress=False)
    return archive


def load(
    path: str | os.PathLike[str],
    *,
    trusted: Collection[str] = (),
    max_bytes: int | None = None,
) -> Any:
    """Read a model that :func:`save` has written.

    Nothing in the file is executed, whoever wrote it: see :mod:`manykernels.persistence`. A model
    is still the work of whoever made it, and predicts what they wanted it to.

    Parameters
    ----------
    path : str or path-like
    trusted : collection of str, default=()
        Names of classes and functions that the file may hold besides those of this package,
        NumPy, SciPy and scikit-learn, such as ``"mymodule.MyKernel"``. Code of these modules is
        run. The message about a file that holds others has their names.
    max_bytes : int, optional
        Most bytes of memory that what is in the file may take, so that a small file cannot
        exhaust it; by default 50 times the length of the file, and at least 64 MiB. What
        :func:`save` writes stays below.

    Returns
    -------
    model : estimator
        It answers exactly as the one that was saved.

    Raises
    ------
    ModelFileError
        If the file is damaged or forged, is no model, holds what is not trusted, or is of a
        newer format. Nothing of it has been restored then.

    See Also
    --------
    save : Write one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import manykernels as mk
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.skops"
    ...     _ = path.write_text("no model")
    ...     try:
    ...         mk.load(path)
    ...     except mk.ModelFileError as error:
    ...         print(str(error).partition("model.skops ")[2])
    cannot be loaded: it is damaged, or no archive at all (File is not a zip file).
    """
    skops = _skops()
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise TypeError(f"trusted is a list of names, such as ['mymodule.MyKernel']: {trusted!r}.")
    try:
        with open(path, "rb") as file:
            limit = _limit(file, max_bytes)
            members = read_archive(file, limit)
        header = _header(members, limit)
        schema = parsed(members.pop(SCHEMA, b"{}"), SCHEMA, limit)
        names = check(schema, members, trusted, limit)
        # What has been checked, and nothing else, is what skops sees.
        members[SCHEMA] = json.dumps(schema).encode()
        archive = io.BytesIO()
        write_archive(archive, members, compress=False)
        members.clear()
        model = _restored(skops, archive.getvalue(), names, limit)
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}.") from error
    _warn_of_newer(header, path)
    return model


def _limit(file: IO[bytes], max_bytes: int | None) -> int:
    return limit_of(os.fstat(file.fileno()).st_size) if max_bytes is None else max_bytes


def header_of(path: str | os.PathLike[str], max_bytes: int | None = None) -> dict[str, Any]:
    """What a file says about itself: its format, the model, and the versions that wrote it."""
    try:
        with open(path, "rb") as file:
            limit = _limit(file, max_bytes)
            return _header(read_archive(file, limit), limit)
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}.") from error


def _header(members: dict[str, bytes], limit: int) -> dict[str, Any]:
    if _HEADER not in members:
        raise ModelFileError("manykernels.save has not written it")
    header = parsed(members.pop(_HEADER), _HEADER, limit)
    found = header.get("format")
    if type(found) is not int or found < 1:
        raise ModelFileError(f"its format {found!r} is none")
    if found > FORMAT:
        raise ModelFileError(
            f"it has format {found}, written by manykernels {header.get('manykernels')}; this is "
            f"manykernels {__version__}, which reads formats up to {FORMAT}: update it"
        )
    return header


def _restored(skops: Any, data: bytes, names: list[str], limit: int) -> Any:
    try:
        parts = skops.loads(data, trusted=names)
        refuse_larger(restored_size(parts), limit)
        model = restored(parts)
        if not _is_model(model):
            raise ModelFileError(f"it holds no estimator of {_PACKAGE} ({type(model).__name__})")
        check_is_fitted(model)
    except (ModelFileError, ImportError):
        raise
    except Exception as error:  # whatever attributes that do not fit together make classes raise
        raise ModelFileError(f"its parts do not fit together ({error})") from error
    return model


def _is_model(model: Any) -> bool:
    if isinstance(model, Pipeline):
        return any(map(_is_model, dict(model.steps).values()))
    own = type(model).__mro__[:-1]
    return isinstance(model, BaseEstimator) and any(
        kind.__module__.partition(".")[0] == _PACKAGE for kind in own
    )


def _warn_of_newer(header: dict[str, Any], path: Any) -> None:
    """Estimators of scikit-learn in a model warn of other versions themselves."""
    written, here = str(header.get("manykernels")), __version__
    if _numbers(written) > _numbers(here):
        warn_caller(
            f"{path} was saved by manykernels {written}, and this is manykernels {here}: what "
            "models have learnt to do in between is missing here.",
            UserWarning,
        )


def _numbers(name: str) -> list[int]:
    return [int(part) for part in name.split(".") if part.isdecimal()]


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError('Saved models need skops: pip install "manykernels[io]".') from error
    return skops.io

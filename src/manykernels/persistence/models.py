"""``save`` and ``load``: files of fitted models that are safe to open."""

from __future__ import annotations

import io
import json
import os
import platform
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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

# -- Replacement of objects that files do not support ---------------------------------------------
#
# Packing and restoring traverse a model: dicts, lists, tuples and attributes of objects. Objects
# without replaced parts are not copied, and shared objects are replaced once, so that a table
# shared by parts of a model is also shared in the file and by the loaded model.


# Attributes that are not stored: callbacks of scikit-learn, which are needed by fits only and
# contain displays and threads; and the moments of partial_fit, far larger than the model.
_OF_FITS = ("_skl_callbacks", "_skl_callbacks_to_teardown", "_stream")
# Replacements without replaced parts, unlike Objects and Pairs.
_STAND_INS = (Arrays, Entries, Frame, Labels, Missing, Stored)
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, partial, type(np.sum))


def packed(model: BaseEstimator) -> Any:
    """Return the model in a form that skops can write; raise for parts that cannot be stored."""
    walk = _Walk(_stand_in)
    # The union first, so that error messages name the kernels.
    walk.of(getattr(model, "union_", None), "")
    return walk.of(model, type(model).__name__)


def restored(model: object) -> Any:
    """Undo :func:`packed`."""
    return _Walk(_original).of(model, "")


def restored_size(model: object) -> int:
    """Return an upper bound of the bytes of the parts that :func:`packed` has replaced."""
    sizes: list[int] = []

    def counted(value: object, walk: _Walk) -> Any:
        if isinstance(value, (*_STAND_INS, Objects, Pairs)):
            sizes.append(value.n_bytes)
        return value

    _Walk(counted).of(model, "")
    return sum(sizes)


class _Walk:
    """Traversal of an object that applies `replace` to all parts."""

    def __init__(self, replace: Callable[[Any, _Walk], Any]) -> None:
        self._replace = replace
        # Objects and their replacements, by address; the objects keep their addresses valid.
        self._done: dict[int, tuple[Any, Any]] = {}
        self._open: set[int] = set()
        self._path: list[str] = []

    def of(self, value: object, step: str) -> Any:
        """Return the replacement of a value; `step` is its name for error messages."""
        if id(value) in self._done:
            return self._done[id(value)][1]
        if id(value) in self._open:
            raise ModelFileError(f"{self.place} refers to itself, which cannot be stored")
        self._open.add(id(value))
        self._path.append(step)
        new = self._replace(value, self)
        new = self._rebuilt(value) if new is value else new
        self._path.pop()
        self._open.discard(id(value))
        self._done[id(value)] = value, new
        return new

    def inside(self, value: object) -> Any:
        """Return the replacement of an entry without a name."""
        return self.of(value, "")

    @property
    def place(self) -> str:
        """Current position: the kernel, or the path of attributes from the estimator."""
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
        return _instance(kind, new)


def _steps(values: Sequence[Any]) -> list[str]:
    """Return names of the items of a list or tuple, for error messages."""
    if len(values) == 2 and isinstance(values[0], str):
        return ["", f"kernel {values[0]!r}"]
    return [""] * len(values)


def _instance(kind: type, attributes: dict[str, Any]) -> Any:
    """Create an object with these attributes, without calling its class."""
    twin: Any = object.__new__(kind)
    twin.__dict__.update(attributes)
    return twin


def _differ(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return any(first is not second for first, second in zip(new, old, strict=True))


def _state(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object without other state, else None."""
    kind = type(value)
    if isinstance(value, type | np.ndarray | np.generic) or not hasattr(value, "__dict__"):
        return None
    if not isinstance(value, BaseEstimator) and kind.__reduce__ is not object.__reduce__:
        return None
    if kind.__getstate__ in (object.__getstate__, BaseEstimator.__getstate__):
        return vars(value)
    # Classes of this package may leave out attributes; the state of others is left to skops.
    ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
    return value.__getstate__() if ours else None


# -- storing -------------------------------------------------------------------------------


def _stand_in(value: object, walk: _Walk) -> Any:
    """Return the replacement of a value, or the value itself."""
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


def _without_fits(estimator: BaseEstimator) -> Any:
    kept = {name: value for name, value in vars(estimator).items() if name not in _OF_FITS}
    return _instance(type(estimator), kept)


def _array(array: np.ndarray, walk: _Walk) -> Any:
    if array.dtype == object:
        return Objects.of(array, walk.inside)
    if array.dtype.hasobject:
        raise ModelFileError(f"{walk.place} has an array of dtype {array.dtype}")
    # Memory-mapped arrays are stored with their values.
    return array if type(array) is np.ndarray else np.array(array, subok=False)


def _known_function(function: Callable[..., Any], place: str) -> Any:
    if not isinstance(function, partial | MethodType) and path_of(function) in functions():
        return function
    name = getattr(function, "__qualname__", repr(function))
    raise ModelFileError(
        f"{place} has the function {name}, which cannot be stored safely, since loading it would "
        "run code named in the file. Replace it by a class (for kernels, a subclass of Kernel) in "
        "a module of your own and load the model with trusted=[...], or pickle the model, if only "
        "you can write the file"
    )


def _check_importable(kind: type, place: str) -> None:
    """Raise if a class cannot be imported by its name."""
    if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is not kind:
        raise ModelFileError(
            f"{place} is of the class {kind.__qualname__}, which cannot be imported from the "
            f"module {kind.__module__}: define it at the top level of the module"
        )


# -- loading -------------------------------------------------------------------------------


def _original(value: object, walk: _Walk) -> Any:
    """Return the original of a replacement, or the value itself."""
    if isinstance(value, Objects | Pairs):
        return value.restored(walk.inside)
    if isinstance(value, _STAND_INS):
        return value.restored()
    return value


#: Format version of saved files. Files of this version and of older ones can be loaded.
FORMAT = 1
# Member with the format version, and the versions of the libraries.
_HEADER = "manykernels.json"
_PACKAGE = __name__.partition(".")[0]


def save(
    model: BaseEstimator, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted model to a file that is safe to open.

    The file is an archive in the format of `skops <https://skops.readthedocs.io>`_. An existing
    file at `path` is replaced when the new one is complete, so that an interruption or a full disk
    does not damage it. Equal models have equal files. Needs ``pip install "manykernels[io]"``.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package, or a :class:`~sklearn.pipeline.Pipeline` with one.
        Its callbacks are not stored. A function, as a kernel or elsewhere, raises an error, since
        it could be restored only by running code. Kernels and transformers of your own classes
        are stored, and have to be passed as `trusted` to :func:`load`.
    path : str or path-like
        By convention, the name ends with ``.skops``.
    notes : dict, optional
        Texts, numbers, and lists and dicts of these, that are kept beside the model, such as where
        its samples come from. The command line shows them: ``manykernels inspect``.

    See Also
    --------
    load : Load a saved model.

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
            f"An estimator of {_PACKAGE} can be saved, or a Pipeline with one; got "
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
    except Exception as error:  # objects of other packages may raise any exception
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
        **({} if notes is None else {"notes": notes}),
    }
    numbered, n_unpacked = canonical(schema, members)
    n_bytes = max(n_unpacked, json_size(numbered[SCHEMA]), restored_size(parts))
    archive = _archive({_HEADER: json.dumps(header, indent=1).encode(), **numbered}, n_bytes)
    with replacing(path, archive.getbuffer().nbytes) as file:
        file.write(archive.getbuffer())


def _archive(members: dict[str, bytes], n_bytes: int) -> io.BytesIO:
    """Return the archive of a model that takes `n_bytes` in memory.

    It is compressed, unless it became so short that `load` would refuse to unpack it.
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
    path: str | os.PathLike[str], *, trusted: Collection[str] = (), max_bytes: int | None = None
) -> Any:
    """Load a model saved by :func:`save`.

    No code in the file is executed, even if its author is not trusted: see
    :mod:`manykernels.persistence`. The predictions of a model are still those that its author
    intended.

    Parameters
    ----------
    path : str or path-like
        File to load.
    trusted : collection of str, default=()
        Names of classes and functions that the file may contain besides those of this package,
        NumPy, SciPy and scikit-learn, such as ``"mymodule.MyKernel"``. Code of these modules is
        run. If a file contains others, the error message lists them.
    max_bytes : int, optional
        Limit of the memory that the contents may take, so that a small file cannot exhaust it; by
        default 50 times the length of the file, and at least 64 MiB. Files of :func:`save` stay
        below the default.

    Returns
    -------
    model : estimator
        Its predictions are identical to those of the saved model.

    Raises
    ------
    ModelFileError
        If the file is damaged or forged, is not a model, contains types that are not trusted, or
        has a newer format. In this case nothing has been restored.

    See Also
    --------
    save : Save a model.

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
    cannot be loaded: it is damaged, or not an archive (File is not a zip file).
    """
    skops = _skops()
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise TypeError(
            f"trusted must be a list of names, such as ['mymodule.MyKernel']; got {trusted!r}."
        )
    try:
        with open(path, "rb") as file:
            limit = _limit(file, max_bytes)
            members = read_archive(file, limit)
        header = _header(members, limit)
        schema = parsed(members.pop(SCHEMA, b"{}"), SCHEMA, limit)
        names = check(schema, members, trusted, limit)
        # skops reads the checked contents only.
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
    """Return the header of a file: its format, the class of the model, versions and notes."""
    try:
        with open(path, "rb") as file:
            limit = _limit(file, max_bytes)
            return _header(read_archive(file, limit), limit)
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}.") from error


def _header(members: dict[str, bytes], limit: int) -> dict[str, Any]:
    if _HEADER not in members:
        raise ModelFileError("it was not written by manykernels.save")
    header = parsed(members.pop(_HEADER), _HEADER, limit)
    number = header.get("format")
    if type(number) is not int or number < 1:
        raise ModelFileError(f"its format {number!r} is invalid")
    if number > FORMAT:
        raise ModelFileError(
            f"it has format {number}, written by manykernels {header.get('manykernels')}; this is "
            f"manykernels {__version__}, which reads formats up to {FORMAT}: update manykernels"
        )
    return header


def _restored(skops: Any, data: bytes, names: list[str], limit: int) -> Any:
    try:
        parts = skops.loads(data, trusted=names)
        refuse_larger(restored_size(parts), limit)
        model = restored(parts)
        if not _is_model(model):
            raise ModelFileError(f"it has no estimator of {_PACKAGE} ({type(model).__name__})")
        check_is_fitted(model)
    except (ModelFileError, ImportError):
        raise
    except Exception as error:  # inconsistent attributes may raise any exception
        raise ModelFileError(f"its parts are inconsistent ({error})") from error
    return model


def _is_model(model: object) -> bool:
    if isinstance(model, Pipeline):
        return any(map(_is_model, dict(model.steps).values()))
    return isinstance(model, BaseEstimator) and any(
        kind.__module__.partition(".")[0] == _PACKAGE for kind in type(model).__mro__[:-1]
    )


def _warn_of_newer(header: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Warn of a newer manykernels; scikit-learn warns of other versions itself."""
    written, here = str(header.get("manykernels")), __version__
    if _numbers(written) > _numbers(here):
        warn_caller(
            f"{path} was saved by manykernels {written}, which is newer than this version, "
            f"{here}: newer features of the model are missing. Update manykernels.",
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

"""``save`` and ``load``: fitted models in files that are safe to open."""

from __future__ import annotations

import io
import json
import os
import platform
from collections.abc import Collection
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._files import replacing
from .._versions import __version__
from .._warnings import warn_caller
from .archive import (
    ModelFileError,
    json_size,
    limit_of,
    read_archive,
    refuse_larger,
    stored_sparse,
    write_archive,
)
from .packing import packed, restored, restored_size
from .schema import SCHEMA, canonical, check, parsed
from .trusted import path_of

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

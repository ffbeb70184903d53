"""Public data sets by name, from a folder or the web."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ..kernels import Views
from ._download import data_folder, found_or_downloaded
from ._sources import SOURCES, Source


def fetch_dataset(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load a public data set of the papers, and download it if it is not there yet.

    ============== ========================================== ==================== ========
    name           data                                       target               checksum
    ============== ========================================== ==================== ========
    "sonar"        208 × 60                                   R, M                 yes
    "ionosphere"   351 × 34                                   g, b                 yes
    "satimage"     6435 × 36, the first 4435 for training     1, 2, 3, 4, 5, 7     yes
    "mfeat"        2000, six views                            digits, 0 to 9       yes
    "pendigits"    10992, four views, 7494 for training       1 to 10 (10 is 0)    yes
    "concrete"     1030 × 8                                   strength             yes
    "heart"        270 × 13                                   1, 2                 no
    "segment"      2310 × 19                                  1 to 7               no
    "white_wine"   4898 × 11                                  grade                no
    ============== ========================================== ==================== ========

    Wine, breast cancer and the Olivetti faces are in :mod:`sklearn.datasets`.

    Parameters
    ----------
    name : str
        A name of the table above.
    data_home : str or path, optional
        Folder with a folder for each set. By default the one that the environment variable
        ``MANYKERNELS_DATA`` names, or else ``~/manykernels_data``. Files that are there are used
        as they are; so a folder that was filled elsewhere serves a machine without the web.
    download_if_missing : bool, default=True
        Whether to download what is not there. If False, a file that is missing is an OSError.
    return_X_y : bool, default=False
        Return data and target only.

    Returns
    -------
    dataset : Bunch
        With the attributes `data`, an array or :class:`~manykernels.Views`; `target`, an array;
        `DESCR`, what the data are and where they come from; and `filenames`. With `return_X_y`,
        data and target.

    Raises
    ------
    OSError
        If a file is not there and cannot be downloaded, or is not the one that was expected. The
        message has the address, and the path to save the file as.

    Warns
    -----
    UserWarning
        If a file was downloaded of which there is no checksum ("no" above): only its shape was
        compared with what is published.

    Notes
    -----
    Addresses change. Those that this version knows could not be tried when it was made, and the
    checksums of mfeat, satimage and concrete are those of copies; a file that differs is refused.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from manykernels.datasets import fetch_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "sonar", "sonar.csv")  # here not the real one
    ...     path.parent.mkdir()
    ...     _ = path.write_text(("0.5," * 60 + "M\\n") * 208)
    ...     X, y = fetch_dataset("sonar", data_home=folder, return_X_y=True)
    >>> X.shape, y.shape
    ((208, 60), (208,))
    """
    if name not in SOURCES:
        names = ", ".join(map(repr, SOURCES))
        raise ValueError(f"There is no data set named {name!r}; there are {names}.")
    source = SOURCES[name]
    folder = data_folder(data_home)
    paths = [
        found_or_downloaded(file, folder, download_if_missing=download_if_missing)
        for file in source.files
    ]
    listed = ", ".join(map(str, paths))
    try:
        data, target = source.parser(*paths)
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"{name!r} cannot be read from {listed}: {error}") from error
    _check_shape(name, source, data, target, listed)
    if isinstance(data, dict):
        data = Views(data)
    if return_X_y:
        return data, target
    return Bunch(
        data=data, target=target, DESCR=source.description, filenames=[str(path) for path in paths]
    )


def _check_shape(name: str, source: Source, data: Any, target: np.ndarray, listed: str) -> None:
    """Refuse what has other sizes than the published data: another version, or a part of it."""
    if isinstance(data, dict):
        found: Any = {view: table.shape for view, table in data.items()}
        assert isinstance(source.columns, dict)
        expected: Any = {view: (source.n_rows, n) for view, n in source.columns.items()}
    else:
        found, expected = data.shape, (source.n_rows, source.columns)
    if found != expected or target.shape != (source.n_rows,):
        raise ValueError(
            f"{name!r} has {found} values and {len(target)} targets in {listed}; published are "
            f"{expected} and {source.n_rows}. Remove these files to download them again."
        )

"""The version of this package, and of everything that its results may depend on."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

__version__ = "0.1.0"

# Distributions that are always needed, and those that some functions need.
_NEEDED = ("numpy", "scipy", "scikit-learn", "clarabel", "highspy", "numba", "threadpoolctl")
_OPTIONAL = (
    *("anndata", "dask", "distributed", "jinja2", "matplotlib", "mudata", "pandas", "polars"),
    *("pyarrow", "rich", "skops", "typer"),
)


def show_versions() -> None:
    """Print versions of Python, of the packages in use and of BLAS, for reports of problems.

    Examples
    --------
    >>> import manykernels
    >>> manykernels.show_versions()
    <BLANKLINE>
    System
      python: ...
    """
    system = {
        "python": sys.version.replace("\n", " "),
        "machine": platform.platform(),
        "processor": platform.processor() or platform.machine(),
    }
    sections = {
        "System": system,
        "Packages": versions(),
        "Optional packages": {name: _found(name) for name in _OPTIONAL},
        "Threads": _thread_pools(),
    }
    for title, lines in sections.items():
        width = max(map(len, lines), default=0)
        print(f"\n{title}")
        for name, value in lines.items():
            print(f"  {name:>{width}}: {value}")


def versions() -> dict[str, str]:
    """Versions of this package and of those that it always needs."""
    return {"manykernels": __version__} | {name: _found(name) for name in _NEEDED}


def _found(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _thread_pools() -> dict[str, str]:
    """Libraries that compute in threads of their own, with how many."""
    from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

    return {
        f"{place}. {pool['internal_api']} {pool['version'] or ''}".rstrip(): (
            f"{pool['num_threads']} threads ({pool['filepath'].rpartition('/')[2]})"
        )
        for place, pool in enumerate(threadpool_info(), start=1)
    }

"""manykernels: learn how to combine kernels, with a certificate for every answer.

>>> from manykernels import MKFDA
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> MKFDA().fit(X, y).score(X, y) > 0.9
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .utils.versions import __version__, show_versions

if TYPE_CHECKING:
    from .comparison import compare
    from .comparison.result import Comparison
    from .estimators import (
        MKFDA,
        MKFDACV,
        MKGLM,
        MKGLMCV,
        MKSVC,
        MKSVCCV,
        MKSVR,
        MKSVRCV,
        ConvexLocalizedFDA,
        ConvexLocalizedSVC,
        ConvexLocalizedSVCCV,
        ConvexLocalizedSVR,
        ConvexLocalizedSVRCV,
        LocalizedFDA,
        LocalizedOneClassSVM,
        LocalizedSVC,
        LocalizedSVCCV,
        LocalizedSVR,
        LocalizedSVRCV,
        MKCox,
        MKCoxCV,
        MKLogistic,
        MKLogisticCV,
        MKOneClassSVM,
        MKRidge,
        MKRidgeCV,
    )
    from .inspection import ColumnImportance, ViewImportance, column_importance, view_importance
    from .kernels import (
        Bands,
        Denoise,
        KernelStack,
        KernelUnion,
        Views,
        auto_kernels,
        kernels_for,
        kernels_of_sets,
        rbf_grid,
    )
    from .persistence import ModelFileError, load, save
    from .reporting import report
    from .scale import ExactFeatures, Nystrom, RandomFeatures

__all__ = [
    "MKFDA",
    "MKFDACV",
    "MKGLM",
    "MKGLMCV",
    "MKSVC",
    "MKSVCCV",
    "MKSVR",
    "MKSVRCV",
    "Bands",
    "ColumnImportance",
    "Comparison",
    "ConvexLocalizedFDA",
    "ConvexLocalizedSVC",
    "ConvexLocalizedSVCCV",
    "ConvexLocalizedSVR",
    "ConvexLocalizedSVRCV",
    "Denoise",
    "ExactFeatures",
    "KernelStack",
    "KernelUnion",
    "LocalizedFDA",
    "LocalizedOneClassSVM",
    "LocalizedSVC",
    "LocalizedSVCCV",
    "LocalizedSVR",
    "LocalizedSVRCV",
    "MKCox",
    "MKCoxCV",
    "MKLogistic",
    "MKLogisticCV",
    "MKOneClassSVM",
    "MKRidge",
    "MKRidgeCV",
    "ModelFileError",
    "Nystrom",
    "RandomFeatures",
    "ViewImportance",
    "Views",
    "__version__",
    "auto_kernels",
    "column_importance",
    "compare",
    "kernels_for",
    "kernels_of_sets",
    "load",
    "rbf_grid",
    "report",
    "save",
    "show_versions",
    "view_importance",
]

# Folders whose names are those of the package. They take most of the time of the import, so each
# is imported when one of its names is first asked for.
_HOMES = ("kernels", "scale", "estimators", "persistence", "inspection", "comparison", "reporting")
_FOLDERS = (
    *_HOMES,
    *("baselines", "cli", "datasets", "discriminant", "display", "domains", "gating", "losses"),
    *("metrics", "model_selection", "smo", "solvers", "survival", "denoising", "utils"),
)

if not TYPE_CHECKING:  # to a type checker, this function would mean that every name exists

    def __getattr__(name: str) -> Any:
        if name in _FOLDERS:
            return import_module(f".{name}", __name__)
        if name in __all__:
            for home in _HOMES:
                folder = import_module(f".{home}", __name__)
                if name in folder.__all__:
                    globals()[name] = getattr(folder, name)
                    return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_FOLDERS})

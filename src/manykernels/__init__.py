"""manykernels: learn how to combine kernels, with a certificate for every answer.

>>> from manykernels import MKFDA
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> MKFDA().fit(X, y).score(X, y) > 0.9
True
"""

from . import denoising  # noqa: F401 (registers the rule "cv" of Denoise)
from ._versions import __version__, show_versions
from .comparison import Comparison, compare
from .estimators import (
    MKFDA,
    MKFDACV,
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
    MKOneClassSVM,
    MKRidge,
    MKRidgeCV,
)
from .inspection import ViewImportance, view_importance
from .kernels import (
    Bands,
    Denoise,
    KernelStack,
    KernelUnion,
    Views,
    auto_kernels,
    kernels_for,
    rbf_grid,
)
from .persistence import ModelFileError, load, save

__all__ = [
    "MKFDA",
    "MKFDACV",
    "MKSVC",
    "MKSVCCV",
    "MKSVR",
    "MKSVRCV",
    "Bands",
    "Comparison",
    "ConvexLocalizedFDA",
    "ConvexLocalizedSVC",
    "ConvexLocalizedSVCCV",
    "ConvexLocalizedSVR",
    "ConvexLocalizedSVRCV",
    "Denoise",
    "KernelStack",
    "KernelUnion",
    "LocalizedFDA",
    "LocalizedOneClassSVM",
    "LocalizedSVC",
    "LocalizedSVCCV",
    "LocalizedSVR",
    "LocalizedSVRCV",
    "MKOneClassSVM",
    "MKRidge",
    "MKRidgeCV",
    "ModelFileError",
    "ViewImportance",
    "Views",
    "__version__",
    "auto_kernels",
    "compare",
    "kernels_for",
    "load",
    "rbf_grid",
    "save",
    "show_versions",
    "view_importance",
]

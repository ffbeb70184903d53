"""manykernels: learn how to combine kernels, with a certificate for every answer.

>>> from manykernels import MKFDA
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> MKFDA().fit(X, y).score(X, y) > 0.9
True
"""

from . import denoising  # noqa: F401 (registers the rule "cv" of Denoise)
from .estimators import (
    MKFDA,
    MKFDACV,
    MKSVC,
    MKSVR,
    LocalizedFDA,
    LocalizedOneClassSVM,
    LocalizedSVC,
    LocalizedSVR,
    MKOneClassSVM,
)
from .inspection import ViewImportance, view_importance
from .kernels import Bands, Denoise, KernelStack, KernelUnion, Views, rbf_grid, views_union

__version__ = "0.1.0"
__all__ = [
    "MKFDA",
    "MKFDACV",
    "MKSVC",
    "MKSVR",
    "Bands",
    "Denoise",
    "KernelStack",
    "KernelUnion",
    "LocalizedFDA",
    "LocalizedOneClassSVM",
    "LocalizedSVC",
    "LocalizedSVR",
    "MKOneClassSVM",
    "ViewImportance",
    "Views",
    "__version__",
    "rbf_grid",
    "view_importance",
    "views_union",
]

"""The scikit-learn face of the library."""

from .fda import MKFDA
from .fda_cv import MKFDACV

__all__ = ["MKFDA", "MKFDACV"]

"""The scikit-learn face of the library."""

from .fda import MKFDA

__all__ = ["MKFDA"]

"""Methods that the papers compare with, under the same interface."""

from .easymkl import EasyMKL
from .kim import KimFDA

__all__ = ["EasyMKL", "KimFDA"]

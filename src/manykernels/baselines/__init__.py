"""Methods that the papers compare with, under the same interface."""

from .average import Average
from .kim import KimFDA

__all__ = ["Average", "KimFDA"]

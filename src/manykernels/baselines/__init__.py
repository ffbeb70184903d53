"""Methods that the papers compare with, under the same interface."""

from .kim import KimFDA

__all__ = ["KimFDA"]

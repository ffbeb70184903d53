"""Methods that the papers compare with, and others that are in use, under the same interface."""

from .easymkl import EasyMKL
from .kim import KimFDA
from .obscure import OBSCURE

__all__ = ["OBSCURE", "EasyMKL", "KimFDA"]

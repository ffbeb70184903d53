"""Classes and functions of this package that may stand in model files.

They are marked where they are defined, by :func:`storable`. A model file is read by the marks
alone: an object is restored by ``__new__`` and a dict of attributes, so a marked class must have
no ``__new__``, ``__del__`` or ``__setstate__`` that does more than keep what it is given. The
tests check this for every marked class.
"""

from __future__ import annotations

from typing import Any, TypeVar

Marked = TypeVar("Marked")

#: Marked classes and functions by module and name. It is complete when the folders of the package
#: that define them have been imported.
STORABLE: dict[str, Any] = {}


def path_of(item: Any) -> str:
    """Return the module and name of a class or function, as one dotted name."""
    return f"{item.__module__}.{item.__name__}"


def storable(item: Marked) -> Marked:
    """Mark a class or function as part of model files. A decorator; subclasses are not marked."""
    STORABLE[path_of(item)] = item
    return item

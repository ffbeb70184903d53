"""Registry of the classes and functions that may occur in model files.

They are registered at their definitions by :func:`storable`. Only registered classes are restored
from a model file, by ``__new__`` and a dict of attributes, so a registered class must have no
``__new__``, ``__del__`` or ``__setstate__`` with side effects. The tests check this for every
registered class.
"""

from typing import Any, TypeVar

Marked = TypeVar("Marked")

#: Registered classes and functions by module and name, complete when the folders of the package
#: that define them have been imported.
STORABLE: dict[str, Any] = {}


def path_of(item: Any) -> str:
    """Return the module and name of a class or function, as one dotted name."""
    return f"{item.__module__}.{item.__name__}"


def storable(item: Marked) -> Marked:
    """Register a class or function for model files (a decorator; not for subclasses)."""
    STORABLE[path_of(item)] = item
    return item

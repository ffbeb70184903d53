"""Plain values: what JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .._tables import shortened


def plain(value: Any) -> Any:
    """Dicts, lists, strings, numbers, booleans and None; numbers that are not finite are None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, Iterable):
        return [plain(one) for one in value]
    return str(value)


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number and what it counts, such as "1 row" or "12 rows"."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"


def listed(names: Iterable[Any]) -> str:
    """Names as in a sentence, long ones shortened: "a", "a and b", "a, b and c"."""
    *first, last = (shortened(str(name)) for name in names)
    return f"{', '.join(first)} and {last}" if first else last

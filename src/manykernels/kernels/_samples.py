"""Tables of samples that come with names."""

from __future__ import annotations

from typing import Any


def is_frame(table: Any) -> bool:
    """Whether `table` is a data frame, of whichever library."""
    return hasattr(table, "columns") and hasattr(table, "dtypes")

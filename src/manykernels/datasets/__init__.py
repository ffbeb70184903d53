"""Small data sets that come without a download."""

from .digits import load_digit_views

__all__ = ["load_digit_views"]

"""Small data sets that come without a download."""

from manykernels.datasets.digits import load_digit_views

__all__ = ["load_digit_views"]

"""What functions of a stack and its labels check before they begin."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from .._sklearn import check_y
from ..kernels import KernelStack


def labelled_stack(
    caller: str, stack: Any, y: Any, sample_weight: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Classes, labels 0 … c−1 and sample weights of the training kernels in `stack`."""
    if not isinstance(stack, KernelStack) or not stack.gram:
        raise ValueError(
            f"{caller} takes a KernelStack of the training samples, got "
            f"{type(stack).__name__}: KernelStack.from_arrays(matrices), or a fitted union of "
            "kernels called on X."
        )
    y = check_y(y, multi_output=False)
    check_classification_targets(y)
    check_consistent_length(stack, y)
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{caller} needs samples of at least 2 classes, got {classes.tolist()}.")
    if sample_weight is None:
        return classes, labels, None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != y.shape or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("sample_weight must be one positive number per sample.")
    return classes, labels, weights

"""Importance of views, with confidence intervals.

============  ==============================================================================
`importance`  :func:`view_importance` and its result, :class:`ViewImportance`
`study`       held-out losses of models with any subset of the kernels
`intervals`   confidence intervals of mean losses and of paired differences
============  ==============================================================================
"""

from .importance import ViewImportance, view_importance

__all__ = ["ViewImportance", "view_importance"]

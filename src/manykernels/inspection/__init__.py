"""Which views matter, and how sure that is.

==============  ===================================================================
`importance`    :func:`view_importance` and its result, :class:`ViewImportance`
`study`         losses of samples that a model has not seen, for any set of kernels
`intervals`     confidence intervals of means of losses and of paired differences
==============  ===================================================================
"""

from .importance import ViewImportance, view_importance

__all__ = ["ViewImportance", "view_importance"]

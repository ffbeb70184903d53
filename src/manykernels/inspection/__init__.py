"""Which views matter, and how sure that is.

============  ==============================================================================
`importance`  :func:`view_importance`: what may be passed, and what it means
`models`      the models that are compared
`views`       which kernels belong to which view
`learners`    estimators on precomputed kernels, with their search or without
`study`       losses of samples that a model has not seen, for any set of kernels
`scoring`     scores that are means of losses of single samples
`intervals`   intervals of these means, and of paired differences
`stability`   weights learnt from half-samples
`result`      :class:`ViewImportance`: the table
============  ==============================================================================
"""

from .importance import ViewImportance, view_importance

__all__ = ["ViewImportance", "view_importance"]

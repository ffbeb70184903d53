"""Importance of views and of their columns, with confidence intervals.

=============  =============================================================================
`importance`   :func:`view_importance` and its result, :class:`ViewImportance`
`columns`      :func:`column_importance` and its result, :class:`ColumnImportance`
`column_data`  columns of tables as they are studied
`effects`      effects of single columns among many, and their tests
`permutation`  fall of held-out scores if values of columns are exchanged
`scoring`      scores that are means of the losses of held-out samples
`study`        held-out losses of models with any subset of the kernels
`intervals`    confidence intervals of mean losses and of paired differences
=============  =============================================================================
"""

from .columns import ColumnImportance, column_importance
from .importance import ViewImportance, view_importance

__all__ = ["ColumnImportance", "ViewImportance", "column_importance", "view_importance"]

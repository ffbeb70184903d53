"""What a model has learnt, as one page; how sparse the weights of a set of kernels are.

============  ===========================================================================
`html`        :func:`report`: the page, made of the dict and of `templates/`
`summary`     everything that a report says, as a dict of plain values
`findings`    its parts about weights, certificates, choices and predictions
`sparsity`    :func:`sparsity_report`: weights at every norm p, and how alike kernels are
============  ===========================================================================
"""

from .html import report
from .sparsity import sparsity_report

__all__ = ["report", "sparsity_report"]

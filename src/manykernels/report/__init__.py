"""What a model has learnt, as one page; what a set of kernels is like, to print and to draw.

============  ==============================================================================
`html`        :func:`report`: the page, and how it is made of the dict and of `templates/`
`summary`     everything that a report says, as a dict of plain values
`learnt`      its parts about weights, certificates and choices
`judged`      its part about predictions
`data`        its parts about the samples and their kernels
`samples`     X and y as the model reads them, and whether it has learnt from them
`charts`      where things are in its pictures
`plain`       what JSON can hold
`sparsity`    :func:`sparsity_report`: how sparse the weights of a set of kernels want to be
============  ==============================================================================
"""

from .html import report
from .sparsity import sparsity_report

__all__ = ["report", "sparsity_report"]

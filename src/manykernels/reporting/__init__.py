"""HTML reports of fitted models, and the sparsity of a set of kernels.

============  ==============================================================================
`html`        :func:`report`: the page, rendered from the dict by the files in `templates/`
`summary`     the contents of a report as a dict of plain values
`findings`    its parts about weights, certificates and model selection
`judgement`   its part about scores of predictions
`sparsity`    :func:`sparsity_report`: kernel weights under several norms p
============  ==============================================================================
"""

from .html import report
from .sparsity import sparsity_report

__all__ = ["report", "sparsity_report"]

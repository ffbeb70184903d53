"""Average: a machine on the mean of the kernels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..estimators._base import KernelEstimator, estimator, fits
from ..estimators._progress import FitTask
from ._machine import OneKernelMachine
from ._merged import PowerOfSum, SourceKernels


@estimator
class Average(OneKernelMachine, KernelEstimator):
    """A machine on the plain mean of the kernels, which is hard to beat.

    The "averaging" of Gehler and Nowozin (2009) and of the tables of Yan et al. (2010, 2012).
    With any machine of this package, and with all that it chooses itself:
    ``Average(estimator=MKFDACV())`` chooses λ.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        One over the number of kernels.

    Notes
    -----
    Kernels are completed and normalised (`missing`, `normalize`) before they are averaged, with
    constants of all training rows: cross-validation inside the machine does not learn them
    again. The mean of kernels of unit variance has unit variance, so that C or λ mean the same as
    with one kernel. The machine with p = ∞, the plain sum, is the same with C, or 1/λ, divided by
    the number of kernels.

    References
    ----------
    P. Gehler, S. Nowozin. On feature combination for multiclass object classification. ICCV 2009.
    F. Yan et al. Non-sparse multiple kernel Fisher discriminant analysis. JMLR 13, 2012.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from manykernels import MKSVC
    >>> from manykernels.baselines import Average
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views()
    >>> model = Average(RBF(), estimator=MKSVC(C=10.0)).fit(views[:300], y[:300])
    >>> model.score(views[300:], y[300:]) > 0.9
    True
    >>> search = GridSearchCV(Average(RBF(), estimator=MKSVC()), {"estimator__C": [0.1, 10.0]})
    >>> search.fit(views[:300], y[:300]).best_params_
    {'estimator__C': 10.0}
    """

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Average the kernels, and fit the machine."""
        machine = self._new_machine()
        rows = self._rows(machine, X, y, sample_weight)
        task = FitTask.begin(self, X, y, 1)
        kernels = SourceKernels.of(self, rows, self.normalize)
        n_kernels = kernels.stack.n_kernels
        mean = PowerOfSum("average", np.full(n_kernels, 1.0 / n_kernels))
        expansion = kernels.learn(machine, mean, y, sample_weight, task)
        fitted = self._attributes(kernels, machine, expansion)
        return self._keep(task, fitted, weights_=mean.weights)

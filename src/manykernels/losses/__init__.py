"""Losses: the convex functions of the kernel weights that solvers minimise.

Examples
--------
>>> import numpy as np
>>> from manykernels import KernelStack
>>> from manykernels.losses.svm import HingeLoss
>>> x = np.array([-2.0, -1.0, 1.0, 2.0])
>>> loss = HingeLoss(KernelStack.from_arrays([np.outer(x, x), np.eye(4)]), np.sign(x), C=1.0)
>>> point = loss.evaluate(np.array([0.5, 0.5]))
>>> round(point.value, 6), point.gains.round(6), point.released
(0.666667, array([0.888889, 0.444444]), False)
"""

"""Support vector machines on one kernel matrix, by sequential minimal optimisation.

The losses of :mod:`manykernels.losses` solve one at every point of weight space. Compiled code is
loaded when the first machine is solved, not when the package is imported.
"""

"""Support vector machines on one kernel matrix, by sequential minimal optimisation.

The losses of :mod:`manykernels.losses` solve one at every point of weight space. Compiled code is
loaded when the first machine is solved, not when the package is imported.
"""

from .box import solve_box
from .program import BoxProblem, BoxSolution

__all__ = ["BoxProblem", "BoxSolution", "solve_box"]

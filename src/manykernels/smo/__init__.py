"""Support vector machines on one kernel matrix, by sequential minimal optimisation.

What the losses of :mod:`manykernels.losses` solve at every point of weight space. Compiled code
is loaded by the first solution, not by the import.
"""

from .box import solve_box
from .program import BoxProblem, BoxSolution

__all__ = ["BoxProblem", "BoxSolution", "solve_box"]

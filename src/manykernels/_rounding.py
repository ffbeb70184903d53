"""Sizes of rounding errors: the tolerances of the whole package, in one place.

All but TINY are relative to the numbers that a result was computed from. Code that needs another
size writes it as a multiple of these and says why.
"""

from __future__ import annotations

import numpy as np

#: Distance from 1 to the next double: twice the rounding error of one operation.
EPS = float(np.finfo(np.float64).eps)

#: Smallest positive number with full precision; guards divisions by what may be zero.
TINY = float(np.finfo(np.float64).tiny)

#: Rounding error of a short computation, some dozen operations or a sum of well-scaled terms.
#: A sum below this share of its terms cannot be distinguished from zero.
ROUNDING = 1e-14

#: Rounding error of a result that went through a factorisation or thousands of operations.
ACCUMULATED = 1e-12

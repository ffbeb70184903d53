"""Table 3 of Yan et al. (2012): 1 − mean MCC in per cent, protein subcellular localisation."""

from __future__ import annotations

import numpy as np

NORMS = (1.0, 32 / 31, 16 / 15, 8 / 7, 4 / 3, 2.0, 4.0, 8.0, 16.0, np.inf)
NORM_NAMES = ("1", "32/31", "16/15", "8/7", "4/3", "2", "4", "8", "16", "∞")
#: λ of MK-FDA and C of MK-SVM, from the text.
REGS = tuple(np.logspace(-8, 0, 9).tolist())
PENALTIES = (1 / 32, 1 / 8, 1 / 2, 1.0, 2.0, 4.0, 8.0, 32.0, 128.0)

#: Means over 30 splits, one for each norm, by data set and method.
PROTEIN_ERRORS: dict[str, dict[str, tuple[float, ...]]] = {
    "plant": {
        "MK-SVM": (8.18, 8.22, 8.20, 8.21, 8.43, 9.47, 11.00, 11.61, 11.91, 11.85),
        "MK-FDA": (10.86, 11.02, 10.96, 11.07, 10.85, 10.69, 11.28, 11.28, 11.04, 11.35),
    },
    "nonpl": {
        "MK-SVM": (8.97, 9.01, 9.08, 9.19, 9.24, 9.43, 9.77, 10.05, 10.23, 10.33),
        "MK-FDA": (10.93, 10.59, 10.91, 10.89, 10.84, 11.00, 12.12, 12.12, 11.81, 12.15),
    },
    "psortNeg": {
        "MK-SVM": (9.99, 9.91, 9.87, 10.01, 10.13, 11.01, 12.20, 12.73, 13.04, 13.33),
        "MK-FDA": (9.89, 10.07, 9.95, 9.87, 9.75, 9.74, 11.39, 11.25, 11.27, 11.50),
    },
    "psortPos": {
        "MK-SVM": (13.07, 13.01, 13.41, 13.17, 13.25, 14.68, 15.55, 16.43, 17.36, 17.63),
        "MK-FDA": (12.59, 13.16, 13.07, 13.34, 13.45, 13.63, 16.86, 16.37, 16.56, 16.94),
    },
}

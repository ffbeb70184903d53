"""Figures of Gönen and Alpaydın (2013), as printed: section 3.1.1, tables 2, 3, 7, 8 and 9."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """One row: accuracy in per cent or mean square error, and support vectors in per cent."""

    value: float
    deviation: float
    support: float


ROWS = {
    "gauss4": {
        "MKL (L, P)": Printed(90.95, 0.61, 38.23),
        "LMKL (L, P)": Printed(91.83, 0.24, 25.13),
        "LMKL (L, L, L)": Printed(91.78, 0.55, 23.83),
    },
    "mfeat": {
        "MKL": Printed(97.40, 0.37, 32.59),
        "LMKL softmax": Printed(97.69, 0.44, 15.06),
        "LMKL sigmoid": Printed(98.58, 0.41, 15.27),
    },
    "olivetti": {
        "MKL": Printed(99.06, 0.88, 22.19),
        "LMKL softmax, 4×4": Printed(97.19, 2.81, 16.65),
        "LMKL softmax, 8×8": Printed(97.19, 2.48, 22.54),
        "LMKL softmax, 16×16": Printed(99.22, 1.33, 16.38),
        "LMKL sigmoid, 4×4": Printed(99.22, 0.93, 22.72),
        "LMKL sigmoid, 8×8": Printed(99.84, 0.44, 26.88),
        "LMKL sigmoid, 16×16": Printed(99.38, 1.34, 21.65),
    },
    "concrete": {
        "SVR linear": Printed(120.61, 2.15, 44.31),
        "SVR q = 2": Printed(92.57, 4.19, 36.22),
        "SVR q = 3": Printed(58.32, 3.66, 73.16),
        "SVR q = 4": Printed(63.83, 9.58, 52.52),
        "SVR q = 5": Printed(61.26, 5.31, 52.17),
        "LMKL softmax": Printed(44.80, 6.33, 64.28),
        "LMKL sigmoid": Printed(48.18, 5.22, 49.20),
        "LMKL softmax, 5 linear": Printed(53.14, 6.42, 34.93),
    },
}

#: Weights of MKL, means of the gates of LMKL over the test samples.
WEIGHTS = {
    "gauss4": {"MKL (L, P)": (0.32, 0.68)},
    "mfeat": {
        "MKL": (0.2466, 0.2968, 0.0886, 0.1464, 0.1494, 0.0722),
        "LMKL softmax": (0.1908, 0.1333, 0.1492, 0.3335, 0.1134, 0.0797),
        "LMKL sigmoid": (0.5115, 0.5192, 0.5429, 0.5566, 0.5274, 0.5132),
    },
    "concrete": {
        "LMKL softmax": (0.1495, 0.0091, 0.0117, 0.0951, 0.7346),
        "LMKL sigmoid": (0.6675, 0.8176, 0.9962, 0.9721, 0.9989),
    },
}

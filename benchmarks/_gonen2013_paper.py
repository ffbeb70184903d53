"""Figures of Gönen and Alpaydın (2013), as printed, and what the paper calls significant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """One row of a table: accuracy in per cent or mean square error, and support vectors."""

    place: str
    value: float
    deviation: float
    support: float
    support_deviation: float
    #: Training time, cross-validation included; 0 if it is not printed.
    seconds: float = 0.0


@dataclass(frozen=True)
class Statement:
    """The first method is significantly better (1) or worse (−1) than the second, or not (0)."""

    place: str
    first: str
    second: str
    outcome: int
    #: "test": accuracies or errors on the test set; "supports": support vectors.
    quantity: str = "test"


def _table(place: str, rows: dict[str, tuple[float, ...]]) -> dict[str, Printed]:
    return {name: Printed(place, *row) for name, row in rows.items()}


ROWS: dict[str, dict[str, Printed]] = {
    "gauss4": _table(
        "Section 3.1.1",
        {
            "MKL (L, P)": (90.95, 0.61, 38.23, 2.34),
            "LMKL (L, P)": (91.83, 0.24, 25.13, 0.91),
            "LMKL (3 L)": (91.78, 0.55, 23.83, 1.20),
        },
    ),
    "multifeat": _table(
        "Table 2",
        {
            "SVM (fac)": (94.97, 0.87, 17.93, 0.91, 5.42),
            "SVM (fou)": (90.54, 1.11, 28.90, 1.69, 5.47),
            "SVM (kar)": (88.13, 0.73, 33.62, 1.31, 5.58),
            "SVM (mor)": (69.61, 0.14, 61.90, 0.49, 6.50),
            "SVM (pix)": (89.42, 0.65, 46.35, 1.64, 5.71),
            "SVM (zer)": (89.12, 0.63, 26.27, 1.67, 5.28),
            "SVM (all)": (97.69, 0.44, 23.36, 1.15, 3.65),
            "MKL": (97.40, 0.37, 32.59, 0.82, 38.90),
            "LMKL (softmax)": (97.69, 0.44, 15.06, 1.03, 5568.51),
            "LMKL (sigmoid)": (98.58, 0.41, 15.27, 0.92, 1639.03),
            "LMKL (6 fac, sigmoid)": (97.03, 0.67, 18.52, 2.47, 1190.74),
        },
    ),
    "olivetti": _table(
        "Table 7",
        {
            "SVM (4×4)": (93.28, 0.65, 21.70, 0.93, 1.67),
            "SVM (8×8)": (97.50, 1.16, 20.13, 1.04, 1.21),
            "SVM (16×16)": (97.03, 0.93, 19.91, 1.01, 1.24),
            "SVM (32×32)": (97.97, 1.48, 23.71, 1.39, 2.05),
            "SVM (64×64)": (97.66, 1.41, 25.94, 1.01, 2.10),
            "MKL": (99.06, 0.88, 22.19, 1.00, 11.53),
            "LMKL (softmax, 4×4)": (97.19, 2.81, 16.65, 3.34, 83.13),
            "LMKL (softmax, 8×8)": (97.19, 2.48, 22.54, 4.56, 139.73),
            "LMKL (softmax, 16×16)": (99.22, 1.33, 16.38, 1.50, 405.61),
            "LMKL (sigmoid, 4×4)": (99.22, 0.93, 22.72, 1.83, 45.39),
            "LMKL (sigmoid, 8×8)": (99.84, 0.44, 26.88, 2.24, 64.55),
            "LMKL (sigmoid, 16×16)": (99.38, 1.34, 21.65, 1.44, 81.03),
        },
    ),
    "concrete": _table(
        "Table 8",
        {
            "SVR (q = 1)": (120.61, 2.15, 44.31, 3.46, 30.32),
            "SVR (q = 2)": (92.57, 4.19, 36.22, 1.24, 32.81),
            "SVR (q = 3)": (58.32, 3.66, 73.16, 1.21, 47.71),
            "SVR (q = 4)": (63.83, 9.58, 52.52, 2.40, 34.37),
            "SVR (q = 5)": (61.26, 5.31, 52.17, 2.23, 34.55),
            "LMKL (softmax)": (44.80, 6.33, 64.28, 4.02, 818.32),
            "LMKL (sigmoid)": (48.18, 5.22, 49.20, 2.05, 575.32),
            "LMKL (5 L, softmax)": (53.14, 6.42, 34.93, 8.45, 1115.32),
        },
    ),
    "wine": _table(
        "Table 10",
        {
            "SVR (q = 1)": (0.59, 0.00, 66.83, 0.57, 1870.13),
            "SVR (q = 2)": (0.54, 0.01, 66.22, 0.67, 1864.24),
            "SVR (q = 3)": (0.54, 0.00, 66.14, 1.13, 3622.55),
            "SVR (q = 4)": (0.52, 0.01, 66.55, 1.03, 4223.70),
            "SVR (q = 5)": (0.52, 0.01, 66.27, 1.24, 2469.31),
            "LMKL (softmax)": (0.52, 0.01, 18.66, 13.41, 60632.51),
            "LMKL (sigmoid)": (0.51, 0.00, 38.29, 2.34, 76249.60),
        },
    ),
}

#: Names of the kernels whose weights are printed; q is the degree of a polynomial.
KERNELS: dict[str, list[str]] = {
    "gauss4": ["linear", "quadratic"],
    "multifeat": ["fac", "fou", "kar", "mor", "pix", "zer"],
    "concrete": ["linear", "q = 2", "q = 3", "q = 4", "q = 5"],
    "wine": ["linear", "q = 2", "q = 3", "q = 4", "q = 5"],
}
#: Place, number of active kernels, and weights of MKL or means of the gates on the test samples.
WEIGHTS: dict[str, dict[str, tuple[str, float | None, tuple[float, ...]]]] = {
    "gauss4": {"MKL (L, P)": ("Fig. 1", None, (0.32, 0.68))},
    "multifeat": {
        "MKL": ("Table 3", 6.0, (0.2466, 0.2968, 0.0886, 0.1464, 0.1494, 0.0722)),
        "LMKL (softmax)": ("Table 3", 2.43, (0.1908, 0.1333, 0.1492, 0.3335, 0.1134, 0.0797)),
        "LMKL (sigmoid)": ("Table 3", 5.36, (0.5115, 0.5192, 0.5429, 0.5566, 0.5274, 0.5132)),
    },
    "concrete": {
        "LMKL (softmax)": ("Table 9", 4.52, (0.1495, 0.0091, 0.0117, 0.0951, 0.7346)),
        "LMKL (sigmoid)": ("Table 9", 4.68, (0.6675, 0.8176, 0.9962, 0.9721, 0.9989)),
    },
    "wine": {
        "LMKL (softmax)": ("Table 11", 1.05, (0.2238, 0.0302, 0.1430, 0.0296, 0.5733)),
        "LMKL (sigmoid)": ("Table 11", 4.58, (0.5956, 0.9698, 0.9978, 0.9849, 0.9929)),
    },
}

_SOFTMAX, _SIGMOID, _COPIES = "LMKL (softmax)", "LMKL (sigmoid)", "LMKL (6 fac, sigmoid)"
STATEMENTS: dict[str, list[Statement]] = {
    "gauss4": [Statement("Fig. 2", "LMKL (20 L)", "LMKL (3 L)", 0)],
    "multifeat": [
        Statement("Table 2", "SVM (all)", "SVM (fac)", 1),
        Statement("Table 2", "SVM (all)", "SVM (fac)", -1, "supports"),
        Statement("Table 2", "MKL", "SVM (all)", 0),
        Statement("Table 2", "MKL", "SVM (all)", -1, "supports"),
        Statement("Table 2", _SOFTMAX, "SVM (all)", 0),
        Statement("Table 2", _SOFTMAX, "SVM (all)", 1, "supports"),
        Statement("Table 2", _SIGMOID, "MKL", 1),
        Statement("Table 2", _SIGMOID, "SVM (all)", 1),
        Statement("Table 2", _SIGMOID, "SVM (fac)", 1),
        Statement("Table 2", _SIGMOID, "MKL", 1, "supports"),
        Statement("Table 2", _SIGMOID, "SVM (all)", 1, "supports"),
        Statement("Table 2", _SIGMOID, "SVM (fac)", 0, "supports"),
        Statement("Fig. 3", _COPIES, "SVM (fac)", 0),
        Statement("Fig. 3", _SIGMOID, _COPIES, 0),
        Statement("Fig. 3", _SIGMOID, _COPIES, 1, "supports"),
        Statement("Fig. 3", "LMKL (10 fac, sigmoid)", _COPIES, 0),
    ],
    "concrete": [
        *(
            Statement("Table 8", gate, f"SVR (q = {q})", 1)
            for gate in (_SOFTMAX, _SIGMOID)
            for q in (1, 2, 3, 4, 5)
        ),
        Statement("Fig. 8", "LMKL (5 L, softmax)", "SVR (q = 3)", 1),
        Statement("Fig. 8", "LMKL (5 L, softmax)", "SVR (q = 3)", 1, "supports"),
        Statement("Fig. 8", "LMKL (10 L, softmax)", "LMKL (5 L, softmax)", 0),
    ],
    "wine": [
        *(
            Statement("Table 10", gate, f"SVR (q = {q})", int(q < 4))
            for gate in (_SOFTMAX, _SIGMOID)
            for q in (1, 2, 3, 4, 5)
        ),
        *(
            Statement("Table 10", gate, f"SVR (q = {q})", 1, "supports")
            for gate in (_SOFTMAX, _SIGMOID)
            for q in (1, 2, 3, 4, 5)
        ),
    ],
}

_EXAMPLES = "../../examples/regions"
#: Tables and figures of the paper, and where they are reproduced.
PLACES = [
    ["Fig. 1", "GAUSS4: boundaries", f"[example]({_EXAMPLES}/plot_localized_regions.py)"],
    ["Section 3.1.1", "GAUSS4: accuracies, support vectors", "below"],
    [
        "Fig. 2",
        "GAUSS4: 1 to 20 lines",
        f"below; [example]({_EXAMPLES}/plot_localized_how_many.py)",
    ],
    ["Table 1", "MULTIFEAT: six views", "the data, `benchmarks/_data.py`"],
    ["Tables 2, 3, Fig. 3", "MULTIFEAT", "below"],
    ["Tables 4–6, Fig. 4", "ADVERT", "the data are not available"],
    ["Table 7, Fig. 6", "OLIVETTI", "below"],
    [
        "Fig. 5",
        "OLIVETTI: gates as saliency",
        f"[example]({_EXAMPLES}/plot_localized_saliency.py)",
    ],
    ["Fig. 7", "MOTORCYCLE", "below, without figures to compare with"],
    ["Tables 8, 9, Fig. 8", "CONCRETE", "below"],
    ["Tables 10, 11", "WHITEWINE", "below"],
    ["Section 4.1", "gates of few columns", "`--sets related`, not measured for this page"],
    ["Section 4.4", "local projections learnt with the gate", "not in the library"],
    [
        "Section 4.5",
        "related methods",
        "[34], [35]: `--sets related`, not measured for this page; [8]: "
        "[comparison](comparison.md), `PolynomialCombination`; [7], [23]: "
        "not in the library",
    ],
]

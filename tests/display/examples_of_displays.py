"""A small display of every kind, of plain data: names are not plain at all."""

import numpy as np

from manykernels.display import (
    AlignmentDisplay,
    ColumnImportanceDisplay,
    ConvergenceDisplay,
    GateDisplay,
    ImportanceDisplay,
    MissingViewsDisplay,
    PathDisplay,
    SurvivalCalibrationDisplay,
    SurvivalDisplay,
    ValidationDisplay,
    WeightsDisplay,
)

# Letters of other languages, what would be a formula, what a legend would leave out, a long one.
NAMES = ["größe Ω₂", "ген $x$ and $", "_private", "a name that is so long that nobody " * 3]
RNG = np.random.default_rng(0)
SHARES = RNG.dirichlet(np.ones(4), 6)
GRID = np.column_stack([side.ravel() for side in np.meshgrid([0.0, 1.0, 2.0], [5.0, 6.0])])
PAIRS = np.tile([0.1, 0.3], (4, 1))
HISTORY = {"n_inner_solves": [1, 2, 3], "rel_gap": [0.1, 1e-4, 0.0]}


def display_of(kind):
    """A new display, not yet drawn."""
    return KINDS[kind]()


KINDS = {
    "weights": lambda: WeightsDisplay(np.array([0.5, 0.0, 1e-6, 0.25]), NAMES, p=np.inf),
    "weights of rows": lambda: WeightsDisplay(SHARES[:2], NAMES, NAMES[:2], p=1.0),
    "path": lambda: PathDisplay([1.0, 2.0, np.inf], SHARES[:3], NAMES, "p", 2.0, "λ = 1"),
    "path of λ": lambda: PathDisplay(np.logspace(-3, 2, 6), SHARES, NAMES, "reg"),
    "importance": lambda: ImportanceDisplay(
        *(NAMES, SHARES[0], PAIRS, SHARES[1], PAIRS, SHARES[2], SHARES, SHARES[3]),
        *(0.9, np.array([0.8, 0.95]), 0.01, np.array([-0.1, 0.2]), "accuracy"),
    ),
    "columns": lambda: ColumnImportanceDisplay(
        *(NAMES, SHARES[0], PAIRS, SHARES[0] > 0.2, SHARES[1], "Effect", "$ of 4"),
    ),
    "alignment": lambda: AlignmentDisplay(SHARES[:4] @ SHARES[:4].T, NAMES, SHARES[0]),
    "gate, strips": lambda: GateDisplay(SHARES, NAMES),
    "gate, lines": lambda: GateDisplay(SHARES, NAMES, np.arange(6.0)[:, None]),
    "gate, maps": lambda: GateDisplay(SHARES, NAMES, GRID, GRID[:3]),
    "gate, dots": lambda: GateDisplay(SHARES, NAMES, np.sqrt(GRID + GRID[:, ::-1] ** 2)),
    "validation": lambda: ValidationDisplay(
        *([0.01, 1.0, 10.0, 1000.0], SHARES[:2, :4], SHARES[2:4, :4], NAMES[:2]),
        *("reg", (1, 2), (0.9, 0.05), "accuracy", "regions = 2"),
    ),
    "convergence": lambda: ConvergenceDisplay({NAMES[1]: HISTORY, NAMES[2]: HISTORY}, {"a": 1e-4}),
    "survival": lambda: SurvivalDisplay(
        *(NAMES, [np.array([1.0, 3.0, 8.0])] * 4, list(-np.sort(-SHARES[:4, :3]))),
        *([np.array([[0.5, 0.9], [0.2, 0.7], [0.0, 0.6]])] * 4, [np.array([9.0, 5.0, 2.0])] * 4),
        *([np.array([0.0, 1.0, 0.0])] * 4, 0.9, "$ of years"),
    ),
    "calibration": lambda: SurvivalCalibrationDisplay(
        *(SHARES[0], SHARES[1], SHARES[1][:, None] + [-0.1, 0.1], np.arange(4), 2.0, NAMES[0]),
    ),
    "missing": lambda: MissingViewsDisplay(SHARES > 0.2, np.arange(6, 0, -1), NAMES),
}

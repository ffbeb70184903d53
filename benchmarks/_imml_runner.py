"""An imputer of iMML, in a process of its own: it lives in an environment of its own.

    python benchmarks/_imml_runner.py IMPUTER FROM.npz TO.npz

Reads one array per view, rows of NaN where a sample lacks it, and writes the arrays filled in.
"""

from __future__ import annotations

import sys

import imml.impute
import numpy as np
import pandas as pd

# Factors, as in the examples of the package; other parameters are its own.
N_COMPONENTS = 10


def main(name: str, source: str, target: str) -> None:
    with np.load(source) as arrays:
        tables = {view: pd.DataFrame(arrays[view]) for view in arrays.files}
    imputer = getattr(imml.impute, name)(n_components=N_COMPONENTS, random_state=0)
    filled = imputer.fit_transform(list(tables.values()))
    np.savez(
        target,
        **{view: np.asarray(table) for view, table in zip(tables, filled, strict=True)},
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

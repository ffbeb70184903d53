"""xRFM, in a process of its own: it lives in an environment of its own.

    python benchmarks/_xrfm_runner.py FROM.npz TO.npz

Reads the arrays X, y and new (standardised numbers; y is a class number or a number) and whether
there are classes; writes predictions for the new rows and seconds of the processor.
"""

from __future__ import annotations

import itertools
import sys
import time

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from xrfm import xRFM

BANDWIDTHS = (2.5, 5.0, 10.0, 20.0, 40.0)
REGS = (1e-4, 1e-2, 1e-1, 1.0)


def fitted(X, y, classes, seed=0):
    """The model with the best score on a fifth of the rows, which are not learnt from."""
    stratify = y if classes else None
    X, X_val, y, y_val = train_test_split(
        X, y, test_size=0.2, stratify=stratify, random_state=seed
    )
    best = -np.inf, None
    for bandwidth, reg, diag in itertools.product(BANDWIDTHS, REGS, (False, True)):
        params = {
            "model": {"kernel": "l2", "bandwidth": bandwidth, "exponent": 1.0, "diag": diag},
            "fit": {"reg": reg, "iters": 5, "verbose": False, "early_stop_rfm": True},
        }
        metric = "accuracy" if classes else "mse"
        torch.manual_seed(seed)
        model = xRFM(params, device="cpu", tuning_metric=metric, n_threads=1, verbose=False)
        model.fit(X, y, X_val, y_val)
        found = np.asarray(model.predict(X_val)).ravel()
        score = np.mean(found == y_val) if classes else -np.mean((found - y_val) ** 2)
        if score > best[0]:
            best = score, model
    return best[1]


def main(source: str, target: str) -> None:
    torch.set_num_threads(1)
    with np.load(source) as arrays:
        X, y, new = (arrays[name] for name in ("X", "y", "new"))
        classes = bool(arrays["classes"])
    X, new = X.astype(np.float32), new.astype(np.float32)
    y = y.astype(np.int64 if classes else np.float32)
    start = time.process_time()
    model = fitted(X, y, classes)
    seconds = time.process_time() - start
    np.savez(target, predicted=np.asarray(model.predict(new)).ravel(), seconds=seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])

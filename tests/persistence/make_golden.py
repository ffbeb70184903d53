"""Make the golden files: small models of this version, and what they answer.

A file that was made once is never made again: it has to load in all later versions. When the
format changes, new files are added beside the old ones::

    python -m tests.persistence.make_golden
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer

import manykernels as mk
from manykernels.gating import KernelRegions
from manykernels.kernels import RBF, Cosine, Linear, Spectrum

FOLDER = Path(__file__).parent / "golden"
VERSION = "0.1.0"


def table(n_rows, seed):
    return np.random.default_rng(seed).normal(size=(n_rows, 3)).round(2)


def words(n_rows, seed):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(["ant", "bee", "cat", "dog"], size=3)) for _ in range(n_rows)]


def letters(n_rows, seed):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("ACGT"), size=8)) for _ in range(n_rows)]


def frame(n_rows, seed):
    numbers = table(n_rows, seed)
    kinds = pd.Categorical(np.array(["x", "y", "z"])[np.arange(n_rows) % 3])
    return pd.DataFrame({"a": numbers[:, 0], "b": numbers[:, 1], "kind": kinds})


def views(n_rows, seed):
    return {"first": table(n_rows, seed), "second": table(n_rows, seed + 1)}


PAIRS = [("near", RBF(0.5)), ("flat", Linear())]
#: For every golden file: a model, and what makes its tables.
MODELS = {
    "fda_table": (mk.MKFDA(PAIRS), table),
    "svc_frame": (mk.MKSVC(), frame),
    "svc_views": (mk.MKSVC(PAIRS), views),
    "svc_texts": (mk.MKSVC({"words": Cosine().after(TfidfVectorizer())}), words),
    "fda_sequences": (mk.MKFDA({"pairs": Spectrum(2)}), letters),
    "gate": (mk.LocalizedSVC(PAIRS), table),
    "regions": (mk.ConvexLocalizedSVC(PAIRS, regions=KernelRegions(sharpness=1.0)), table),
}


def golden(name):
    """The files of a model: itself, and its answers."""
    return FOLDER / f"{name}-{VERSION}.skops", FOLDER / f"{name}-{VERSION}.npy"


def make():
    FOLDER.mkdir(exist_ok=True)
    for name, (model, data) in MODELS.items():
        path, answers = golden(name)
        if path.exists():
            continue
        model.fit(data(12, 0), np.arange(12) % 2)
        mk.save(model, path)
        np.save(answers, model.decision_function(data(5, 9)))


if __name__ == "__main__":
    make()

"""Models fitted on every kind of table, for the tests of files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from sklearn.impute import SimpleImputer
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import manykernels as mk
from manykernels.baselines import Average, Product
from manykernels.gating import Gaussian, GivenRegions, KernelRegions, Sigmoid
from manykernels.kernels import (
    RBF,
    Categorical,
    ChiSquare,
    Cosine,
    FromDistances,
    Gapped,
    Intersection,
    Jaccard,
    Laplacian,
    Linear,
    Mismatch,
    NormalScores,
    Polynomial,
    Presence,
    Spectrum,
    Tanimoto,
    WeightedDegree,
)
from manykernels.kernels.adapters import PairwiseKernel
from manykernels.kernels.composition import Constant
from tests.estimators.registry import X_TEST, X, Y

N, M = 30, 9
WORDS = np.array(["ant", "bee", "cat", "dog", "élan", "fox"])


@dataclass(frozen=True)
class Case:
    """A model that is not fitted, its training data, and new samples."""

    model: Any
    X: Any
    new: Any
    y: Any = None

    def fitted(self):
        return self.model.fit(self.X, Y[:N] if self.y is None else self.y)


def texts(start, stop):
    """Sentences of words, the first of which tells the class."""
    rng = np.random.default_rng(stop)
    return [
        " ".join([WORDS[i % 3], *rng.choice(WORDS, size=4), str(i)]) for i in range(start, stop)
    ]


def sequences(start, stop):
    rng = np.random.default_rng(start + 7)
    return ["".join(rng.choice(list("ACGT"), size=12)) for _ in range(start, stop)]


def pandas_frame(start, stop):
    """A column of every type that files hold."""
    rows = np.arange(start, stop)
    table = np.vstack([X, X_TEST])[start:stop]
    colours = pd.Categorical(WORDS[rows % 3], categories=WORDS, ordered=True)
    frame = pd.DataFrame(
        {
            "a": table[:, 0],
            "b": table[:, 1],
            "single": table[:, 2].astype(np.float32),
            "count": rows,
            "truth": rows % 2 == 0,
            "colour": colours,
            "word": WORDS[rows % 4],
            "object": pd.Series(WORDS[rows % 3].tolist(), dtype=object),
            "nullable": pd.array(rows, dtype="Int64"),
            "nullable_text": pd.array(WORDS[rows % 3], dtype="string"),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rows, unit="D"),
        }
    )
    frame.loc[frame.index[3], ["object", "nullable", "nullable_text", "word"]] = None
    return frame.set_axis([f"sample {row}" for row in rows])


def polars_frame(start, stop):
    rows = np.arange(start, stop)
    table = np.vstack([X, X_TEST])[start:stop]
    return pl.DataFrame(
        {
            "a": table[:, 0],
            "b": table[:, 1].astype(np.float32),
            "count": rows,
            "truth": rows % 2 == 0,
            "word": WORDS[rows % 3],
            "lost": [None if row == start + 3 else float(row) for row in rows],
            "category": pl.Series(WORDS[rows % 3], dtype=pl.Categorical),
            "enum": pl.Series(WORDS[rows % 3], dtype=pl.Enum(WORDS.tolist())),
        }
    )


def views(start, stop, *, lacking=False):
    table = np.vstack([X, X_TEST])[start:stop]
    labels = [f"p{row}" for row in range(start, stop)]
    wide = pd.DataFrame(table[:, :3], index=labels)
    narrow = pd.DataFrame({"x": table[:, 3], "z": table[:, 4]}, index=labels)
    if lacking:
        return {"wide": wide.iloc[4:], "narrow": narrow.iloc[:-3]}
    return {"wide": wide, "narrow": narrow.iloc[::-1]}


TRAIN, NEW = X[:N], X_TEST[:M]
POSITIVE, NEW_POSITIVE = np.abs(TRAIN), np.abs(NEW)
WHOLE = np.vstack([TRAIN, NEW])
NUMBERS = np.arange(N + M)[:, None]
SQUARES = np.sum((WHOLE[:, None] - WHOLE) ** 2, axis=2)
SPARSE, NEW_SPARSE = (sparse.csr_matrix(np.where(t > 0.3, t, 0.0)) for t in (TRAIN, NEW))
STACK = mk.KernelUnion([("rbf", RBF()), ("linear", Linear())]).fit(TRAIN)
LABELLED = pd.Series(Y[:N], index=[f"p{row}" for row in range(N)])
TWO = np.where(Y[:N] == 0, "yes", "no")
MIXED = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), ["a", "nullable"]),
    (OneHotEncoder(handle_unknown="ignore"), ["colour", "word"]),
)
FRAMES = pandas_frame(0, N), pandas_frame(N, N + M)
POLARS = polars_frame(0, N), polars_frame(N, N + M)
MISSING = views(0, N, lacking=True), views(N, N + M, lacking=True)

SCALED = RBF().after(StandardScaler())

CASES = {
    "default": Case(mk.MKSVC(), TRAIN, NEW),
    "landmarks": Case(
        mk.MKFDA(approximation=mk.Nystrom(12, selector=mk.scale.KMeansPlusPlus())), TRAIN, NEW
    ),
    "random features": Case(
        mk.MKRidge(
            {"gauss": RBF() + Linear(), "laplace": 2 * Laplacian(), "scaled": SCALED},
            approximation=mk.RandomFeatures(20),
        ),
        TRAIN,
        NEW,
        TRAIN[:, 0],
    ),
    "exact features": Case(
        mk.MKFDA({"square": Polynomial(2), "cosine": Cosine()}, approximation=mk.ExactFeatures()),
        TRAIN,
        NEW,
    ),
    "machine on features": Case(
        mk.MKSVC(RBF(), loss="squared_hinge", approximation=mk.Nystrom(12)), TRAIN, NEW
    ),
    "regression": Case(mk.MKRidge(), TRAIN, NEW, TRAIN[:, 0]),
    "one class": Case(mk.MKOneClassSVM(nu=0.3), TRAIN, NEW),
    "texts as labels": Case(mk.MKFDA(), TRAIN, NEW, TWO),
    "objects as labels": Case(mk.MKSVC(), TRAIN, NEW, TWO.astype(object)),
    "weights of classes": Case(mk.MKSVC(class_weight={0: 1.0, 1: 2.0, 2: 1.5}), TRAIN, NEW),
    "probabilities": Case(mk.MKFDACV(ps=[1, 2], regs=[0.1, 1.0]), TRAIN, NEW),
    "splitter and scorer": Case(
        mk.MKSVCCV(
            Cs=[1.0],
            ps=[2],
            cv=StratifiedKFold(2),
            scoring=make_scorer(f1_score, average="macro"),
        ),
        TRAIN,
        NEW,
    ),
    "several labels": Case(
        mk.MKFDACV(ps=[1, 2], regs=[1.0]), TRAIN, NEW, (TRAIN[:, :2] > 0.5).astype(int)
    ),
    "shared labels": Case(
        mk.MKFDA(multi_label="shared"), TRAIN, NEW, (TRAIN[:, :2] > 0.5).astype(int)
    ),
    "calibrated labels": Case(
        mk.MKSVCCV(ps=[1, 2], Cs=[1.0]), TRAIN, NEW, (TRAIN[:, :2] > 0.5).astype(int)
    ),
    "one machine for all classes": Case(mk.MKSVC(multi_class="single"), TRAIN, NEW),
    "sparse": Case(mk.MKFDA({"linear": Linear(), "cosine": Cosine()}), SPARSE, NEW_SPARSE),
    "sparse array": Case(mk.MKFDA(), sparse.csr_array(SPARSE), sparse.csr_array(NEW_SPARSE)),
    "single precision": Case(mk.MKSVC(), TRAIN.astype(np.float32), NEW),
    "histograms": Case(
        Product([("chi", ChiSquare()), ("common", Intersection())]), POSITIVE, NEW_POSITIVE
    ),
    "algebra": Case(
        mk.MKFDA(
            [
                ("sum", RBF(0.1) + Linear() * Constant(2.0)),
                ("polynomial", Polynomial(2, columns=[0, 1])),
                ("laplacian", Laplacian(columns=slice(1, 4))),
                ("sigmoid", PairwiseKernel("rbf", {"gamma": 0.3})),
                ("scores", RBF().after(NormalScores())),
                ("process", ConstantKernel(2.0) * Matern(nu=1.5)),
            ]
        ),
        TRAIN,
        NEW,
    ),
    "functions of numpy": Case(
        mk.MKFDA(RBF().after(FunctionTransformer(np.log1p))), POSITIVE, NEW_POSITIVE
    ),
    "bits": Case(
        mk.MKSVC({"tanimoto": Tanimoto(), "jaccard": Jaccard()}),
        np.maximum(TRAIN > 0, np.eye(N, 5)),
        (NEW > 0).astype(float),
    ),
    "pandas": Case(mk.MKSVC(), *(frame[["a", "b", "count", "colour"]] for frame in FRAMES)),
    "pandas, chosen": Case(
        mk.MKFDA(
            {
                "mixed": RBF().after(MIXED),
                "names": RBF(columns=["a", "b"]),
                "index": Linear(columns=FRAMES[0].columns[:2]),
                "numbers": Linear(columns=make_column_selector(dtype_include=np.float64)),
                "colour": Categorical(columns=["colour"]),
            }
        ),
        *FRAMES,
    ),
    "pandas, one array": Case(
        mk.MKSVC(RBF()),
        pd.DataFrame(TRAIN, columns=list("vwxyz")),
        pd.DataFrame(NEW, columns=list("vwxyz")),
    ),
    "polars": Case(
        mk.MKFDA({"a": RBF(columns=["a", "b"]), "c": Linear(columns="count")}), *POLARS
    ),
    "polars, mixed": Case(
        mk.MKSVC({"a": RBF(columns=["a"]), "word": Categorical(columns=["word"])}), *POLARS
    ),
    "views": Case(mk.MKSVC(), views(0, N), views(N, N + M), LABELLED),
    "views of several kinds": Case(
        mk.MKFDA({"text": Cosine().after(TfidfVectorizer()), "sparse": None, "array": None}),
        {"text": texts(0, N), "sparse": SPARSE, "array": TRAIN},
        {"text": texts(N, N + M), "sparse": NEW_SPARSE, "array": NEW},
    ),
    "texts": Case(
        mk.MKSVC(
            {
                "words": Cosine().after(TfidfVectorizer(min_df=2)),
                "letters": Linear().after(TfidfVectorizer(analyzer="char", dtype=np.float32)),
            }
        ),
        texts(0, N),
        texts(N, N + M),
    ),
    "sequences": Case(
        mk.MKFDA(
            {
                "words": Spectrum(2, alphabet="dna"),
                "places": WeightedDegree(3),
                "gaps": Gapped(2, 3),
                "errors": Mismatch(2, 1),
            }
        ),
        sequences(0, N),
        sequences(N, N + M),
    ),
    "stack": Case(mk.MKSVC("precomputed"), STACK(TRAIN), STACK(NEW, TRAIN)),
    "row numbers": Case(
        mk.MKFDA({"far": FromDistances(SQUARES), "near": FromDistances(np.sqrt(SQUARES))}),
        NUMBERS[:N],
        NUMBERS[N:],
    ),
    "missing views, mean": Case(mk.MKSVC(missing="mean"), *MISSING, LABELLED),
    "missing views, conditional": Case(mk.MKFDA(missing="conditional"), *MISSING, LABELLED),
    "presence": Case(
        mk.MKSVC({"wide": None, "narrow": None, "known": Presence()}, missing="mean"),
        *MISSING,
        LABELLED,
    ),
    "gate": Case(mk.LocalizedSVC(gating=Gaussian(scale=0.1, features=[0, 1])), TRAIN, NEW),
    "gate of components": Case(mk.LocalizedFDA(), TRAIN, NEW),
    "gate, random state": Case(
        mk.LocalizedSVC(gating=Sigmoid(early_stopping=0, random_state=np.random.RandomState(3))),
        TRAIN,
        NEW,
    ),
    "regions": Case(mk.ConvexLocalizedSVC(regions=KernelRegions(sharpness=1.0)), TRAIN, NEW),
    "regions, given": Case(
        mk.ConvexLocalizedSVC(regions=GivenRegions(KMeans(2, random_state=0))), TRAIN, NEW
    ),
    "denoised": Case(mk.MKFDA(denoise=mk.Denoise("cv")), TRAIN, NEW),
    "bands": Case(mk.MKFDA([("near", RBF()), ("flat", Linear())], denoise=mk.Bands()), TRAIN, NEW),
    "merged": Case(Average(estimator=mk.MKFDACV(regs=[1.0])), TRAIN, NEW),
    "pipeline": Case(make_pipeline(StandardScaler(), mk.MKSVC()), TRAIN, NEW),
}

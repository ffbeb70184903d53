"""Survival: MKCoxCV with nothing set by hand, beside models of scikit-survival.

    python -m benchmarks.survival [--quick] [--sets blca,gbsg2] [--write]

Five cohorts of TCGA (expression, copy numbers, mutations, age and sex) with the five folds of the
authors of a deep model (R. J. Chen et al., Cancer Cell 2022; its figures are those that the
repository mahmoodlab/MCAT gives for the same folds), and three data sets that come with
scikit-survival, by five stratified folds. Figures are Harrell's concordance indices on the test
parts, means over the folds. Missing ages are replaced by the median of the training part.

Ours learns from the views as they are, with the kernels of ``auto_kernels`` and all other
parameters at their defaults. *without clinic* and *clinic alone* leave out age and sex, or all
else. The others are given all columns side by side, standardised: Cox with an elastic net
(penalty by five folds), a random survival forest of 200 trees, and a survival SVM (a Gaussian
kernel, penalty by five folds). Seconds are those of the processor, for a fit with the choice of
its parameters, with one thread.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks._command import chosen_sets, command_line, load, report
from benchmarks._tables import environments, markdown, verdict
from manykernels import MKCoxCV, Views
from manykernels.metrics import concordance_index
from manykernels.survival import survival_array

COHORTS = list(_data.TCGA_COHORTS)
PACKAGED = ["gbsg2", "whas500", "veteran"]
SETS_QUICK = ["veteran"]
# Mean concordance index of the five cohorts that ours should reach.
LEAST_MEAN = 0.675
# Published figures on the same folds: genes alone, and genes with microscope slides.
PUBLISHED = {
    "published, genes": (0.541, 0.466, 0.598, 0.539, 0.493),
    "published, slides and genes": (0.624, 0.580, 0.817, 0.620, 0.622),
}

#: Views of training and test samples, and their targets.
Fold = tuple[dict[str, pd.DataFrame], np.ndarray, dict[str, pd.DataFrame], np.ndarray]


def cohort_folds(name: str) -> list[Fold]:
    """Folds of a cohort; missing numbers have the median of the training part."""
    views, y, folds = _data.tcga_survival(name)
    result = []
    for train, test in folds:
        medians = {view: table.loc[train].median() for view, table in views.items()}
        parts = [
            {view: table.loc[rows].fillna(medians[view]) for view, table in views.items()}
            for rows in (train, test)
        ]
        result.append(
            (parts[0], survival_array(y.loc[train]), parts[1], survival_array(y.loc[test]))
        )
    return result


def packaged_folds(name: str) -> list[Fold]:
    """Folds of a data set of scikit-survival."""
    from sksurv import datasets

    loaders = {
        "gbsg2": datasets.load_gbsg2,
        "whas500": datasets.load_whas500,
        "veteran": datasets.load_veterans_lung_cancer,
    }
    X, y = loaders[name]()
    y = survival_array(y)
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y["event"])
    return [
        ({"table": X.iloc[train]}, y[train], {"table": X.iloc[test]}, y[test])
        for train, test in folds
    ]


# -- contenders ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contender:
    """A model, made anew for every fold, and the views it is given."""

    name: str
    fit: Callable[[Any, np.ndarray], Any]
    views: Callable[[str], bool] = lambda view: True
    joins: bool = False

    def __hash__(self) -> int:
        return hash(self.name)

    def risks(self, fold: Fold) -> tuple[np.ndarray, float]:
        """Risks of the test samples, and seconds of the fit."""
        train, y, test, _ = fold
        parts = [
            {name: table for name, table in part.items() if self.views(name)}
            for part in (train, test)
        ]
        tables = [joined(part) if self.joins else Views(part) for part in parts]
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "all coefficients are zero", UserWarning)
            model = self.fit(tables[0], y)
        seconds = time.process_time() - begin
        return np.asarray(model.predict(tables[1])), seconds


def joined(views: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """All columns side by side."""
    return pd.concat([table.add_prefix(f"{name}:") for name, table in views.items()], axis=1)


def standardised(model: Any) -> Any:
    """Pipeline that makes numbers of categories and standardises them."""
    categories = make_column_selector(dtype_include=["category", "object", "string"])
    encoder = OneHotEncoder(drop="if_binary", handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((encoder, categories), remainder=StandardScaler())
    return make_pipeline(columns, model)


class ElasticNet:
    """Cox regression with an elastic net; the penalty is the best of a path in five folds."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Self:
        self.model_ = self._path().fit(X, y)
        alphas = self.model_[-1].alphas_
        scores = np.zeros(len(alphas))
        for train, test in folds_of(y):
            model = self._path(alphas=alphas).fit(X.iloc[train], y[train])
            for k, alpha in enumerate(alphas):
                risk = model.predict(X.iloc[test], alpha=alpha)
                scores[k] += concordance_index(y[test]["event"], y[test]["time"], risk)
        self.alpha_ = alphas[np.argmax(scores)]
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.model_.predict(X, alpha=self.alpha_)

    @staticmethod
    def _path(**options: Any) -> Any:
        from sksurv.linear_model import CoxnetSurvivalAnalysis

        options = {"n_alphas": 20, "alpha_min_ratio": 0.02, "max_iter": 10_000, **options}
        return standardised(CoxnetSurvivalAnalysis(l1_ratio=0.5, **options))


def elastic_net(X: pd.DataFrame, y: np.ndarray) -> ElasticNet:
    return ElasticNet().fit(X, y)


def forest(X: pd.DataFrame, y: np.ndarray) -> Any:
    from sksurv.ensemble import RandomSurvivalForest

    return standardised(RandomSurvivalForest(200, random_state=0)).fit(X, y)


def survival_svm(X: pd.DataFrame, y: np.ndarray) -> Any:
    from sksurv.svm import FastKernelSurvivalSVM

    model = standardised(FastKernelSurvivalSVM(kernel="rbf", random_state=0))
    grid = {"fastkernelsurvivalsvm__alpha": 2.0 ** np.arange(-12, 5, 4)}
    return GridSearchCV(model, grid, cv=folds_of(y), error_score=0.5).fit(X, y)


def folds_of(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Five folds, stratified by event."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return list(folds.split(np.zeros(len(y)), y["event"]))


def ours(X: Any, y: np.ndarray) -> MKCoxCV:
    return MKCoxCV().fit(X, y)


OURS = Contender("MKCoxCV", ours)
WITHOUT = Contender("MKCoxCV, without clinic", ours, lambda view: view != "clinic")
ALONE = Contender("MKCoxCV, clinic alone", ours, lambda view: view == "clinic")
NET = Contender("Cox, elastic net", elastic_net, joins=True)
FOREST = Contender("random survival forest", forest, joins=True)
SVM = Contender("survival SVM", survival_svm, joins=True)
ON_COHORTS = [OURS, WITHOUT, ALONE, NET, FOREST, SVM]
ON_PACKAGED = [OURS, NET, FOREST, SVM]


# -- measurements ----------------------------------------------------------------------------


def measured(folds: list[Fold], contenders: list[Contender]) -> dict[str, Any]:
    """Concordance indices and seconds of every contender on every fold."""
    indices: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for contender in contenders:
        for fold in folds:
            risk, used = contender.risks(fold)
            truth = fold[3]
            index = concordance_index(truth["event"], truth["time"], risk)
            indices.setdefault(contender.name, []).append(index)
            seconds.setdefault(contender.name, []).append(used)
    y = folds[0][1]
    sizes = {"n_train": len(y), "n_events": int(y["event"].sum()), "n_folds": len(folds)}
    return {**sizes, "indices": indices, "seconds": seconds}


# -- the page --------------------------------------------------------------------------------


def page(results: dict[str, dict[str, Any]]) -> str:
    """The page of the documentation, made of the results by data set."""
    paragraphs = (__doc__ or "").replace("``", "`").strip().split("\n\n")[2:]
    protocol = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    parts = [
        "# Survival",
        f"Written by `python -m benchmarks.survival --write`. {protocol}",
        environments(results),
    ]
    for title, names in (
        ("Five cohorts of TCGA", COHORTS),
        ("Data sets of scikit-survival", PACKAGED),
    ):
        shown = {name: results[name] for name in names if name in results}
        if shown:
            sizes = ", ".join(
                f"{name} {one['n_train']} ({one['n_events']})" for name, one in shown.items()
            )
            parts += [
                f"## {title}",
                f"Training patients (events among them): {sizes}.",
                _table(shown),
            ]
        if list(shown) == COHORTS:
            mean = float(np.mean([np.mean(one["indices"][OURS.name]) for one in shown.values()]))
            held = verdict(mean >= LEAST_MEAN)
            parts.append(f"Mean of MKCoxCV at least {LEAST_MEAN}: {mean:.3f}, {held}.")
    return "\n\n".join(parts) + "\n"


def _table(results: dict[str, dict[str, Any]]) -> str:
    """Concordance indices, a row for each contender."""
    rows = []
    for name in next(iter(results.values()))["indices"]:
        values = [float(np.mean(one["indices"][name])) for one in results.values()]
        seconds = float(np.mean([np.mean(one["seconds"][name]) for one in results.values()]))
        rows.append([name, *(f"{v:.3f}" for v in (*values, np.mean(values))), f"{seconds:.1f}"])
    if list(results) == COHORTS:
        for name, figures in PUBLISHED.items():
            rows.append([name, *(f"{v:.3f}" for v in (*figures, np.mean(figures))), ""])
    return markdown(["", *results, "mean", "s"], rows, n_left=1)


def main(arguments: list[str] | None = None) -> int:
    parser = command_line("survival", "Survival of patients.", COHORTS + PACKAGED)
    options = parser.parse_args(arguments)

    def parts() -> Iterator[tuple[str, dict[str, Any]]]:
        for name in chosen_sets(parser, options, SETS_QUICK):
            is_cohort = name in COHORTS
            folds = load(name, partial(cohort_folds if is_cohort else packaged_folds, name))
            if folds is not None:
                contenders = ON_COHORTS if is_cohort else ON_PACKAGED
                part = measured(folds[:1] if options.quick else folds, contenders)
                for contender, indices in part["indices"].items():
                    print(f"{name}, {contender}: {np.mean(indices):.3f}", file=sys.stderr)
                yield name, part

    with threadpool_limits(1):
        report("survival", parts(), page, options.write, COHORTS + PACKAGED)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The tables of Gönen and Alpaydın (2013).

    python -m benchmarks.gonen2013 [--quick] [--sets gauss4,multifeat] [--write]

A random third of the samples is the test set. 5 × 2 cross-validation of the rest makes ten pairs
of training and validation parts; C (and ε) are the values with the best mean on the ten validation
parts, and the ten models with these values are judged on the test set. (OLIVETTI: two pictures of
each person to test on, eight folds.) The paper has one such division of the data; here are
several, and figures are means over them.

Kernels have unit diagonal. LMKL is Algorithm 1: gradient steps from random parameters, no penalty,
until the objective changes by less than 1 %, and a gate of all its columns. The authors' programs
set outputs of the gate below 1e-3 to zero, so that kernels are *active* above that, and dual
variables below C/1000, so that *support vectors* are those from there on. MKL and
machines on one kernel are ``MKSVC`` and ``MKSVR`` with p = 1. Columns are scaled by the training
part.

The standard error is that of the difference of the two means: our deviation between divisions (of
accuracies at least that of as many test samples, since few divisions may be alike by chance), once
for the single division of the paper and once for the mean of ours, and the paper's deviation
between its ten models. Seconds are those of the processor with one thread, of all fits of one
division, cross-validation included, as in the paper; they have no verdict.
"""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.svm import SVR
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks._command import Results, command_line, load, write_results
from benchmarks._gonen2013 import (
    EXPERIMENTS,
    READINGS,
    SCALINGS,
    TOL,
    Draw,
    Experiment,
    Method,
    bayes_rate,
    published_gate,
)
from benchmarks._gonen2013_paper import (
    KERNELS,
    PLACES,
    ROWS,
    STATEMENTS,
    WEIGHTS,
    Printed,
    Statement,
)
from benchmarks._tables import (
    WITHIN,
    PaperRow,
    counted,
    environments,
    markdown,
    measured_with,
    paper_table,
    standard_error,
)
from manykernels import LocalizedSVR
from manykernels.gating import Softmax
from manykernels.kernels import Linear, Polynomial
from manykernels.metrics.comparison import combined_f_test

PAPER = "Gönen and Alpaydın 2013"
SCALING = "scaling of "
SETS = [*EXPERIMENTS, "motorcycle", *(f"{SCALING}{name}" for name in READINGS), "tolerance"]
LEVEL = 0.05
# Divisions with which scalings are compared, where it takes long.
READING_DRAWS = {"wine": 1}
# Share of C below which the authors' programs set dual variables to zero.
LEAST_DUAL = 1e-3
# The tolerance of the authors' programs, and the C with which it is tried on OLIVETTI.
TOL_OF_PROGRAMS, C_OF_TRIAL = 1e-3, 10.0

# -- measurements ---------------------------------------------------------------------------------


def measured(experiment: Experiment, n_draws: int, n_folds: int | None = None) -> dict[str, Any]:
    """What every method gives on `n_draws` divisions of the data, with the chosen parameters."""
    methods: dict[str, list[dict[str, Any]]] = {name: [] for name in experiment.methods}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(n_draws):
            draw = experiment.draw(seed)
            for name, method in experiment.methods.items():
                methods[name].append(chosen(experiment, method, draw, n_folds))
                last = methods[name][-1]
                print(
                    f"{experiment.title}, {seed}, {name}: {np.mean(last['test']):.2f}, "
                    f"{last['chosen']}, SV {last['support']:.1f} %, {last['seconds']:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
    return {
        "title": experiment.title,
        "scaling": experiment.scaling,
        "errors": experiment.errors,
        "n_draws": n_draws,
        "n_test": len(draw.test),
        "least_dual": LEAST_DUAL,
        "n_choosing": {
            name: method.n_choosing
            for name, method in experiment.methods.items()
            if method.n_choosing
        },
        "methods": methods,
    }


def chosen(
    experiment: Experiment, method: Method, draw: Draw, n_folds: int | None = None
) -> dict[str, Any]:
    """Results of the parameters with the best mean on the validation parts.

    The models of these parameters, one for every training part, are judged on the test samples.
    A tie goes to the smaller values.
    """
    folds = draw.folds[:n_folds]
    grid = parameters(experiment, method)
    parts = [of_fold(experiment, method, draw, fold, grid) for fold in folds[: method.n_choosing]]
    sign = -1.0 if experiment.errors else 1.0
    fits = {values: [part[values] for part in parts] for values in grid}
    best = max(grid, key=lambda values: np.mean([sign * fit["scores"][0] for fit in fits[values]]))
    others = (
        [of_fold(experiment, method, draw, fold, [best]) for fold in folds[method.n_choosing :]]
        if method.n_choosing
        else []
    )
    return summary(experiment, method, fits, best, [part[best] for part in others])


def parameters(experiment: Experiment, method: Method) -> list[tuple[float, ...]]:
    """All combinations of values of C (and ε)."""
    return list(itertools.product(*{**experiment.grid, **method.grid}.values()))


def of_fold(
    experiment: Experiment,
    method: Method,
    draw: Draw,
    fold: tuple[np.ndarray, np.ndarray],
    grid: list[tuple[float, ...]],
) -> dict[tuple[float, ...], dict[str, Any]]:
    """Results of all parameters with one pair of training and validation parts."""
    train, other = fold
    tables = draw.scaled(experiment.scaling, train)
    parts = [method.block(tables, rows, train) for rows in (train, other, draw.test)]
    found = {}
    for values in grid:
        options = dict(zip({**experiment.grid, **method.grid}, values, strict=True))
        model = clone(method.estimator).set_params(**options)
        begin = time.process_time()
        model.fit(parts[0], draw.targets[train])
        seconds = time.process_time() - begin
        scores = [
            score(experiment, model, block, draw.targets[rows])
            for block, rows in zip(parts[1:], (other, draw.test), strict=True)
        ]
        found[values] = {
            "scores": scores,
            "support": 100.0 * n_support_vectors(model) / len(train),
            "steps": model.n_iter_,
            "seconds": seconds,
            **weights(model, parts[2]),
        }
    return found


def summary(
    experiment: Experiment,
    method: Method,
    fits: dict[tuple[float, ...], list[dict[str, Any]]],
    best: tuple[float, ...],
    others: list[dict[str, Any]],
) -> dict[str, Any]:
    """What is kept of the fits of one division; `others` have the chosen values only."""
    names = {**experiment.grid, **method.grid}
    found = fits[best] + others
    return {
        "chosen": list(best),
        "test": [fit["scores"][1] for fit in found],
        "supports": [fit["support"] for fit in found],
        "support": np.mean([fit["support"] for fit in found]),
        "active": np.mean([fit["active"] for fit in found]),
        "weights": np.mean([fit["weights"] for fit in found], axis=0),
        "steps": np.mean([fit["steps"] for fit in found]),
        "seconds": sum(fit["seconds"] for some in (*fits.values(), others) for fit in some),
        "grid": {
            ", ".join(f"{name} = {value:g}" for name, value in zip(names, at, strict=True)): {
                "validation": np.mean([fit["scores"][0] for fit in some]),
                "test": np.mean([fit["scores"][1] for fit in some]),
                "supports": np.mean([fit["support"] for fit in some]),
                "active": np.mean([fit["active"] for fit in some]),
            }
            for at, some in fits.items()
        },
    }


def n_support_vectors(model: Any) -> int:
    """Support vectors as the authors' programs count them: dual variables of at least C / 1000."""
    return int(np.count_nonzero(np.abs(model.dual_coef_) >= LEAST_DUAL * model.C))


def score(experiment: Experiment, model: Any, block: Any, targets: np.ndarray) -> float:
    """Accuracy in per cent, or mean square error."""
    answers = model.predict(block)
    if experiment.errors:
        return float(np.mean((answers - targets) ** 2))
    return 100.0 * float(np.mean(answers == targets))


def weights(model: Any, block: Any) -> dict[str, Any]:
    """Mean weights of the kernels on the test samples, and how many are not zero."""
    if hasattr(model, "gate"):
        active = model.active_kernels(block).sum(axis=1).mean()
        return {"weights": model.gate(block).mean(axis=0), "active": active}
    # Convex regions have a row of weights each.
    rows = np.atleast_2d(model.weights_)
    return {"weights": rows.mean(axis=0), "active": (rows > 0).sum(axis=1).mean()}


def readings(name: str, n_draws: int | None = None, n_folds: int = 4) -> dict[str, Any]:
    """What some methods give with every scaling of the columns."""
    whole, n_draws = EXPERIMENTS[name](), n_draws or READING_DRAWS.get(name, 3)
    some = {method: whole.methods[method] for method in READINGS[name]}
    found: dict[str, dict[str, list[dict[str, Any]]]] = {method: {} for method in some}
    for scaling in SCALINGS:
        experiment = replace(whole, scaling=scaling, methods=some)
        for method, draws in measured(experiment, n_draws, n_folds)["methods"].items():
            found[method][scaling] = [
                {what: draw[what] for what in ("test", "support")} for draw in draws
            ]
    return {"n_draws": n_draws, "n_folds": n_folds, "methods": found}


def tolerance(n_draws: int = 6) -> dict[str, Any]:
    """Softmax gates on OLIVETTI that descend until the tolerance of the authors' programs."""
    whole = EXPERIMENTS["olivetti"]()
    some = {
        name: replace(method, estimator=clone(method.estimator).set_params(tol=TOL_OF_PROGRAMS))
        for name, method in whole.methods.items()
        if "softmax" in name
    }
    experiment = replace(whole, methods=some, grid={"C": [C_OF_TRIAL]})
    found = measured(experiment, n_draws)["methods"]
    return {
        "n_draws": n_draws,
        "tol": TOL_OF_PROGRAMS,
        "C": C_OF_TRIAL,
        "methods": {
            name: {
                "test": np.mean([draw["test"] for draw in draws]),
                "supports": np.mean([draw["supports"] for draw in draws]),
                "steps": np.mean([draw["steps"] for draw in draws]),
            }
            for name, draws in found.items()
        },
    }


def motorcycle() -> dict[str, Any]:
    """Mean square errors of piecewise linear fits in ten folds, with the C and ε of Fig. 7."""
    X, y = _data.mcycle()
    X = (X - X.mean()) / X.std()
    folds = KFold(10, shuffle=True, random_state=0)
    values = {"C": 1000.0, "epsilon": 16.0}
    models: dict[str, Any] = {}
    for name, kernel in {
        "LMKL, three linear kernels": Linear(),
        "LMKL, three kernels 1 + x z": Polynomial(1, gamma=1.0),
    }.items():
        lines = [(f"line{j}", kernel) for j in range(3)]
        gate = published_gate(Softmax)
        models[name] = LocalizedSVR(lines, gating=gate, normalize=None, tol=TOL, **values)
    models["SVR, Gaussian kernel"] = SVR(gamma=2.0, **values)
    models["SVR, linear kernel"] = SVR(kernel="linear", **values)
    errors, supports = {}, {}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, model in models.items():
            predicted = cross_val_predict(model, X, y, cv=folds)
            errors[name] = np.mean((predicted - y) ** 2)
            supports[name] = 100.0 * len(model.fit(X, y).support_) / len(y)
    return {"errors": errors, "supports": supports}


# -- rows beside the paper ------------------------------------------------------------------------


def means(part: dict[str, Any], method: str, quantity: str) -> np.ndarray:
    """Means of a quantity over the models of each division."""
    return np.array([np.mean(draw[quantity]) for draw in part["methods"][method]])


def compared(ours: np.ndarray, deviation: float, least: float = 0.0) -> float:
    """Standard error of the difference of the means of our divisions from the one of the paper.

    Few divisions may be alike by chance; `least` is what their deviation is at least.
    """
    between = max(float(ours.std(ddof=1)) if len(ours) > 1 else 0.0, least)
    return standard_error((between, 1), (between, len(ours)), (deviation, 10))


def printed(part: dict[str, Any], name: str) -> dict[str, Printed]:
    """The paper's rows of the methods that were measured."""
    return {method: row for method, row in ROWS[name].items() if method in part["methods"]}


def value_rows(results: Results, name: str) -> list[PaperRow]:
    """Accuracies or errors beside the paper's."""
    part = results[name]
    rows = []
    for method, there in printed(part, name).items():
        ours = means(part, method, "test")
        row = PaperRow(
            PAPER,
            there.place,
            part["title"].split(":")[0],
            method,
            there.value,
            float(ours.mean()),
            compared(ours, there.deviation, least_deviation(part, ours)),
            lower_is_better=part["errors"],
        )
        reasons = [
            other_scaling(results, name, method, row),
            other_values(part, row, there, "test"),
        ]
        rows.append(replace(row, reason="; ".join(filter(None, reasons))))
    return rows


def least_deviation(part: dict[str, Any], accuracies: np.ndarray) -> float:
    """Deviation of an accuracy on so many test samples; none of errors."""
    share = float(accuracies.mean()) / 100.0
    return 0.0 if part["errors"] else 100.0 * (share * (1.0 - share) / part["n_test"]) ** 0.5


def other_values(part: dict[str, Any], row: PaperRow, there: Printed, quantity: str) -> str:
    """Values of C (and ε) that give the paper's figure, and its accuracy or error, for a reason.

    The paper does not print the values that it has chosen. Only values count that one division
    may choose: the validation parts are at most two deviations worse than at the best values.
    """
    draws = part["methods"][row.method.split(", supp")[0].split(", act")[0]]
    if row.outcome == WITHIN or "grid" not in draws[0]:
        return ""
    near: list[tuple[float, str]] = []
    for label in draws[0]["grid"]:
        found, tests, supports = (
            np.array([draw["grid"][label][what] for draw in draws])
            for what in (quantity, "test", "supports")
        )
        least = least_deviation(part, tests)
        pairs = [(tests, there.value, compared(tests, there.deviation, least))]
        if quantity == "active":
            pairs.append((found, row.theirs, compared(found, 0.0)))
        else:
            error = compared(supports, there.support_deviation)
            pairs.append((supports, there.support, error))
        best = max if not part["errors"] else min
        worse = np.array(
            [
                draw["grid"][label]["validation"]
                - best(values["validation"] for values in draw["grid"].values())
                for draw in draws
            ]
        )
        pairs.append((worse, 0.0, compared(worse, 0.0)))
        if all(abs(ours.mean() - theirs) <= 2 * error for ours, theirs, error in pairs):
            what = "the error" if part["errors"] else "the accuracy"
            text = f"{found.mean():.2f} with {label}"
            if quantity != "test":
                text += f", where {what} is {tests.mean():.2f}"
            near.append((abs(float(found.mean()) - row.theirs), text))
    return min(near)[1] if near else ""


def other_scaling(
    results: Results, name: str, method: str, row: PaperRow, quantity: str = "test"
) -> str:
    """Scaling of columns that gives the paper's figure where ours does not, for a reason.

    One that gives its support vectors has to give its accuracy or error, too.
    """
    part, there = results[name], ROWS[name][method]
    measured_so = results.get(f"{SCALING}{name}", {}).get("methods", {}).get(method, {})
    if row.outcome == WITHIN:
        return ""
    near = []
    ours = means(part, method, "test")
    error = compared(ours, there.deviation, least_deviation(part, ours))
    for scaling, draws in measured_so.items():
        if scaling == part["scaling"] or quantity not in draws[0]:
            continue
        value, tests = (np.mean([draw[what] for draw in draws]) for what in (quantity, "test"))
        as_good = abs(tests - there.value) <= 2 * error
        if as_good and abs(value - row.theirs) <= 2 * row.error:
            near.append(f"{value:.2f} with columns {scaling}")
    return f"{' and '.join(near)}, see the scaling of columns" if near else ""


def other_tolerance(results: Results, name: str, method: str, row: PaperRow) -> str:
    """Support vectors with the tolerance of the authors' programs, for a reason."""
    if name != "olivetti" or "tolerance" not in results or row.outcome == WITHIN:
        return ""
    part = results["tolerance"]
    found = part["methods"].get(method)
    if found is None or abs(found["supports"] - row.theirs) > 2 * row.error:
        return ""
    return (
        f"{found['supports']:.2f} with C = {part['C']:g} and the tolerance of the authors' "
        f"programs, {part['tol']:g}, where the accuracy is {found['test']:.2f}"
    )


def support_rows(results: Results, name: str) -> list[PaperRow]:
    """Support vectors in per cent beside the paper's."""
    part = results[name]
    rows = []
    for method, there in printed(part, name).items():
        ours = means(part, method, "supports")
        row = PaperRow(
            PAPER,
            there.place,
            part["title"].split(":")[0],
            f"{method}, support vectors",
            there.support,
            float(ours.mean()),
            compared(ours, there.support_deviation),
            lower_is_better=True,
        )
        reasons = [
            other_scaling(results, name, method, row, "support"),
            other_tolerance(results, name, method, row),
            other_values(part, row, there, "supports"),
        ]
        rows.append(replace(row, reason="; ".join(filter(None, reasons))))
    return rows


def active_rows(results: Results, name: str) -> list[PaperRow]:
    """Numbers of active kernels beside the paper's."""
    rows = []
    for method, (place, active, _) in WEIGHTS.get(name, {}).items():
        if active is None or method not in results[name]["methods"]:
            continue
        ours = means(results[name], method, "active")
        data = results[name]["title"].split(":")[0]
        row = PaperRow(
            PAPER,
            place,
            data,
            f"{method}, active kernels",
            active,
            float(ours.mean()),
            compared(ours, 0.0),
            lower_is_better=True,
        )
        there = ROWS[name][method]
        rows.append(replace(row, reason=other_values(results[name], row, there, "active")))
    return rows


def paper_rows(results: Results) -> list[PaperRow]:
    """All figures of the paper beside ours."""
    return [
        row
        for name in ROWS
        if name in results
        for make in (value_rows, support_rows, active_rows)
        for row in make(results, name)
    ]


# -- what the paper calls significant -------------------------------------------------------------


def tested(part: dict[str, Any], statement: Statement) -> tuple[int, int, int]:
    """Divisions in which the first method is significantly better, level, and worse."""
    counts = [0, 0, 0]
    better = 1.0 if statement.quantity == "test" and not part["errors"] else -1.0
    pairs = zip(part["methods"][statement.first], part["methods"][statement.second], strict=True)
    for one, other in pairs:
        gains = better * np.subtract(one[statement.quantity], other[statement.quantity])
        significant = combined_f_test(gains.reshape(5, 2)).pvalue < LEVEL
        counts[1 if not significant else 0 if gains.mean() > 0 else 2] += 1
    return counts[0], counts[1], counts[2]


def agrees(statement: Statement, counts: tuple[int, int, int]) -> bool:
    """Whether most divisions say what the paper says."""
    return 2 * counts[1 - statement.outcome] > sum(counts)


def statements(results: Results) -> list[tuple[Statement, tuple[int, int, int]]]:
    """All statements of the paper whose data have been measured, with our counts."""
    return [
        (statement, tested(results[name], statement))
        for name, listed in STATEMENTS.items()
        if name in results and len(next(iter(results[name]["methods"].values()))[0]["test"]) == 10
        for statement in listed
        if {statement.first, statement.second} <= set(results[name]["methods"])
    ]


# -- the page -------------------------------------------------------------------------------------


def page(results: Results) -> str:
    """The page of the documentation."""
    paragraphs = (__doc__ or "").replace("``", "`").strip().split("\n\n")[2:]
    rows = paper_rows(results)
    values = [row for name in ROWS if name in results for row in value_rows(results, name)]
    found = statements(results)
    held = sum(agrees(statement, counts) for statement, counts in found)
    parts = [
        "# Gönen and Alpaydın (2013): localized kernels",
        "Written by `python -m benchmarks.gonen2013 --write`.",
        *(" ".join(paragraph.splitlines()) for paragraph in paragraphs),
        environments(results),
        "## Totals",
        f"- accuracies and errors: {counted(values)}\n"
        f"- all rows, with support vectors and active kernels: {counted(rows)}\n"
        f"- {held} of {len(found)} statements about significance agree in most divisions",
        "## All tables and figures",
        markdown(["there", "what", "here"], PLACES, n_left=3),
    ]
    if any(part.startswith(SCALING) for part in results):
        parts += ["## Scaling of columns", readings_section(results)]
    for name in EXPERIMENTS:
        if name in results:
            parts += [f"## {results[name]['title']}", section(results, name)]
    if found:
        parts += ["## What the paper calls significant", statements_section(found)]
    if "motorcycle" in results:
        parts += ["## Fig. 7: MOTORCYCLE", motorcycle_section(results["motorcycle"])]
    return "\n\n".join(parts) + "\n"


def section(results: Results, name: str) -> str:
    """All tables of one experiment."""
    part = results[name]
    divisions = "division" if part["n_draws"] == 1 else "divisions"
    parts = [f"{part['n_draws']} {divisions}; columns {part['scaling']}."]
    if "least_dual" not in part:
        parts.append("Here support vectors are all whose dual variable is not zero.")
    if name == "gauss4":
        parts.append(
            f"The Bayes rule for the printed parameters has an accuracy of {bayes_rate():.2f} %; "
            "the paper's figures are above that, on one test set of 400 samples."
        )
    if part.get("n_choosing"):
        number = min(part["n_choosing"].values())
        parts.append(
            f"To save time, C and ε of the gates are chosen on {number} of the ten validation "
            "parts. Errors hardly depend on ε, but support vectors do: so the chosen ε and the "
            "support vectors differ much between divisions, and their standard errors are large."
        )
    if name in ROWS:
        parts.append(paper_table(value_rows(results, name)))
    parts.append(figures(part, ROWS.get(name, {})))
    if any(method in part["methods"] for method in WEIGHTS.get(name, {})):
        parts.append(weights_table(results, name))
    if name == "olivetti":
        parts.append(patches(part))
        if "tolerance" in results:
            parts.append(tolerance_table(results["tolerance"]))
    return "\n\n".join(parts)


def figures(part: dict[str, Any], there: dict[str, Printed]) -> str:
    """What else was measured, a row for each method."""
    what = "MSE" if part["errors"] else "accuracy %"
    header = ["method", what, "SV %", "paper", "active kernels", "steps", "seconds", "paper"]
    rows = []
    for method, draws in part["methods"].items():
        other = there.get(method)
        deviation = float(np.mean([np.std(draw["test"]) for draw in draws]))
        cells = [
            *(method, f"{means(part, method, 'test').mean():.2f} ± {deviation:.2f}"),
            f"{means(part, method, 'supports').mean():.1f}",
            f"{other.support:.1f}" if other else "",
            f"{means(part, method, 'active').mean():.2f}",
            f"{means(part, method, 'steps').mean():.0f}",
            f"{means(part, method, 'seconds').mean():.1f}",
            f"{other.seconds:.0f}" if other and other.seconds else "",
        ]
        rows.append(cells)
    note = "± is the deviation between the models of one division."
    return f"{note}\n\n{markdown(header, rows)}"


def weights_table(results: Results, name: str) -> str:
    """Mean weights of the kernels on the test samples, under those of the paper."""
    rows = []
    for method, (_, active, there) in WEIGHTS[name].items():
        if method not in results[name]["methods"]:
            continue
        ours = np.mean([draw["weights"] for draw in results[name]["methods"][method]], axis=0)
        number = "" if active is None else f"{active:.2f}"
        rows.append([f"{method}, paper", *(f"{weight:.3f}" for weight in there), number])
        here = f"{means(results[name], method, 'active').mean():.2f}"
        rows.append([method, *(f"{weight:.3f}" for weight in ours), here])
    return markdown(["mean weight", *KERNELS[name], "active"], rows)


def patches(part: dict[str, Any]) -> str:
    """Fig. 6: how many patches have a weight that counts."""
    used = {}
    for method in ("MKL", "LMKL (softmax, 16×16)", "LMKL (sigmoid, 8×8)"):
        mean = np.mean([draw["weights"] for draw in part["methods"][method]], axis=0)
        used[method] = int((mean > 0.1 * mean.max()).sum())
    counts = ", ".join(f"{method} {number}" for method, number in used.items())
    return (
        f"Patches with more than a tenth of the largest mean weight (Fig. 6): {counts}. In the "
        "paper MKL and softmax use fewer of them than sigmoid."
    )


def tolerance_table(part: dict[str, Any]) -> str:
    """Softmax gates with the tolerance of the authors' programs."""
    rows = [
        [
            method,
            f"{found['test']:.2f}",
            f"{found['supports']:.1f}",
            f"{ROWS['olivetti'][method].support:.1f}",
            f"{found['steps']:.0f}",
        ]
        for method, found in part["methods"].items()
    ]
    note = (
        f"With C = {part['C']:g} and the tolerance of the authors' programs, {part['tol']:g}, "
        f"means of {part['n_draws']} divisions:"
    )
    return f"{note}\n\n{markdown(['method', 'accuracy %', 'SV %', 'paper', 'steps'], rows)}"


def statements_section(found: list[tuple[Statement, tuple[int, int, int]]]) -> str:
    """Table of the statements and our tests."""
    words = {1: "better", 0: "level", -1: "worse"}
    rows = [
        [
            statement.place,
            statement.first,
            statement.second,
            "support vectors" if statement.quantity == "supports" else "accuracy or error",
            words[statement.outcome],
            " / ".join(map(str, counts)),
            "agrees" if agrees(statement, counts) else "differs",
        ]
        for statement, counts in found
    ]
    header = ["there", "first", "second", "of", "paper: first is", "better / level / worse", ""]
    note = (
        "The combined 5 × 2 cv F test of Alpaydın (1999) on the results of the ten models on the "
        "test set, as in the paper, in every division, at the level of 5 %: in how many divisions "
        "the first method is significantly better than the second, not significantly different, "
        "and significantly worse. Fewer support vectors are better. (The paper compares methods "
        "on OLIVETTI, too, where there are eight folds and the test does not apply.)"
    )
    return f"{note}\n\n{markdown(header, rows, n_left=5)}"


def readings_section(results: Results) -> str:
    """Means with every scaling, beside the paper's."""
    rows = []
    of_sets = {name: results[f"{SCALING}{name}"] for name in READINGS if SCALING + name in results}
    for name, part in of_sets.items():
        title = results[name]["title"].split(":")[0] if name in results else name.upper()
        used = results[name]["scaling"] if name in results else ""
        for method, by_scaling in part["methods"].items():
            there = ROWS[name].get(method)
            cells = []
            for scaling in SCALINGS:
                draws = by_scaling.get(scaling)
                text = f"{np.mean([draw['test'] for draw in draws]):.2f}" if draws else "–"
                cells.append(f"**{text}**" if scaling == used else text)
            rows.append([title, method, *cells, f"{there.value:.2f}" if there else ""])
    numbers = sorted({(part["n_draws"], part["n_folds"]) for part in of_sets.values()})
    counts = " or ".join(f"{n_draws} divisions with {n} parts" for n_draws, n in numbers)
    note = (
        f"Accuracy or error with columns scaled in several ways, means of {counts} to train on "
        "each. The programs that the authors published standardise columns by default, and can "
        "leave them as they are. **Bold**: the scaling of the sections below. Test results were "
        "seen when it was selected."
    )
    return f"{note}\n\n{markdown(['data', 'method', *SCALINGS, 'paper'], rows, n_left=2)}"


def motorcycle_section(part: dict[str, Any]) -> str:
    """The errors of the piecewise linear fit."""
    rows = [
        [name, f"{error:.0f}", f"{part['supports'][name]:.0f}"]
        for name, error in part["errors"].items()
    ]
    note = (
        "C = 1000, ε = 16, ten folds; the paper draws the fit and gives no figures. Times are "
        "standardised; kernels are not scaled to unit diagonal, since a linear kernel of one "
        "column would be left with its sign. Lines of linear kernels meet in one point, the "
        "common intercept."
    )
    return f"{note}\n\n{markdown(['model', 'MSE of left-out samples', 'SV %'], rows)}"


def results_of(sets: list[str], quick: bool) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Measure parts one by one; None where the data are missing."""
    for name in sets:
        if name.startswith(SCALING):
            data = name.removeprefix(SCALING)
            some = (1, 2) if quick else ()
            yield name, load(name, lambda data=data, some=some: readings(data, *some))  # type: ignore[misc]
        elif name == "motorcycle":
            yield name, load(name, motorcycle)
        elif name == "tolerance":
            yield name, load(name, lambda: tolerance(*((1,) if quick else ())))
        else:
            experiment = load(name, EXPERIMENTS[name])
            if experiment is None:
                yield name, None
                continue
            some = (1, 2) if quick else (experiment.n_draws,)
            yield name, measured(experiment, *some)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if the data of a part were missing."""
    parser = command_line("gonen2013", "The tables of Gönen and Alpaydın (2013).", SETS)
    options = parser.parse_args(arguments)
    results, missing = {}, False
    for name, part in results_of(options.sets, options.quick):
        missing |= part is None
        if part is not None:
            results[name] = part
            if options.write:
                write_results("gonen2013", {name: part}, page, SETS)
    if results and not options.write:
        print(page({name: {"environment": measured_with(), **results[name]} for name in results}))
    return int(missing)


if __name__ == "__main__":
    sys.exit(main())

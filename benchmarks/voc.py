"""Learning the norm for each object: the protocol of Yan et al. (2010, 2012) on VOC2007.

    python -m benchmarks.voc [--quick] [--sets flower17,scene15] [--write] [--features out/flower]

The papers take the 20 kinds of objects of VOC2007 one by one, against all other pictures. For
each, the norm p and λ or C with the best average precision on a validation set are taken, and the
model is learnt again on the training and the validation set together. The kernels of VOC2007 are
not available. Here are the kinds of Flower17 (ten views of photographs, see the page flower) and
of Scene15 (three views, each with a Gaussian and a Laplacian kernel), each against the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits

from benchmarks import _data
from benchmarks._command import Results, command_line, load, with_environment, write_results
from benchmarks._flower_features import distances
from benchmarks._tables import (
    PaperRow,
    counted,
    environments,
    markdown,
    paper_table,
    standard_error,
)
from benchmarks._ye2008_protocol import shown
from manykernels import MKFDA, MKFDACV, MKSVC, MKSVCCV, KernelStack, KernelUnion
from manykernels.kernels import FromDistances

FOLDER = Path(__file__).parents[1] / "out" / "flower"
PS = (1.0, 1.0625, 1.25, 1.5, 2.0, 4.0, np.inf)
REGS = tuple(4.0 ** np.arange(-5, 5, 2))
REGS_OF_TRACE = tuple(10.0 ** np.arange(-8, 2, 2))
CS = (0.25, 1.0, 4.0, 16.0, 64.0)
FIXED = {"ℓ1": 1.0, "ℓ2": 2.0, "ℓ∞": np.inf}
NORMS = [*FIXED, "ℓp"]
#: Rows of each kind to learn from, to choose with, and to judge on.
SIZES = {"flower17": (30, 15, 35), "scene15": (30, 15, 55)}
USED = 1e-3  # of the largest weight
SVM, FDA, FDA_TRACE = "MK-SVM", "MK-FDA", "MK-FDA, unit trace"

#: By machine: estimator with a grid, estimator, name and values of its parameter, normalisation.
MACHINES: dict[str, tuple[Any, Any, str, tuple[float, ...], str]] = {
    SVM: (MKSVCCV, MKSVC, "C", CS, "spherical"),
    FDA: (MKFDACV, MKFDA, "reg", REGS, "spherical"),
    FDA_TRACE: (MKFDACV, MKFDA, "reg", REGS_OF_TRACE, "trace"),
}

# Average precisions of MK-SVM and MK-FDA in per cent, of Table 2 of 2010 with ℓ1, ℓ2, ℓ∞ and ℓp,
# and of Table 1 of 2012 with ℓ1, ℓ∞ and ℓp of MK-FDA; its MK-SVM is that of 2010.
_PRINTED = """
aeroplane 78.8 79.7 79.6 79.6 80.4 80.1 79.5 80.4 79.9 79.5 80.9
bicycle 63.4 64.7 65.0 64.7 69.9 68.5 67.6 69.9 64.7 67.6 67.8
bird 57.3 60.6 61.0 61.0 61.6 63.6 61.9 64.8 57.1 62.0 63.7
boat 71.1 70.2 70.1 71.1 72.4 71.2 70.0 72.4 70.9 70.1 70.8
bottle 29.1 29.7 29.9 29.7 29.1 30.4 29.7 29.9 27.5 29.7 29.4
bus 62.9 64.2 64.9 65.5 66.2 67.5 66.1 66.7 63.4 66.1 66.1
car 77.9 78.6 78.8 78.8 81.4 80.8 79.5 81.9 79.1 79.5 80.9
cat 56.7 56.4 56.4 57.1 57.8 57.8 56.9 58.8 57.1 56.9 58.3
chair 52.3 52.8 53.0 53.0 53.5 53.3 52.5 53.5 51.9 52.5 52.9
cow 38.7 40.3 41.4 41.4 46.4 43.6 41.5 46.4 42.3 41.5 43.4
diningtable 52.4 56.1 57.3 56.6 62.5 61.2 59.2 62.8 57.2 59.2 61.4
dog 42.8 43.9 45.8 44.6 46.0 46.0 46.1 45.9 44.2 46.1 45.1
horse 78.9 80.2 80.6 80.6 81.0 81.6 81.1 82.2 80.0 81.1 81.0
motorbike 66.3 66.6 66.8 66.8 67.7 68.6 67.7 69.5 67.8 67.8 68.8
person 86.7 87.8 88.0 88.0 89.1 88.8 88.1 89.3 86.8 88.1 88.8
pottedplant 31.8 39.7 41.0 40.5 41.2 43.1 42.6 39.5 32.5 42.6 42.5
sheep 40.2 44.8 46.0 46.0 47.0 46.4 44.4 49.5 39.0 44.4 43.9
sofa 44.0 43.2 43.8 44.0 43.9 45.4 43.7 46.8 43.5 43.7 45.9
train 81.3 82.2 82.4 82.4 85.2 85.0 84.2 85.1 83.2 84.2 85.1
tvmonitor 53.3 53.2 53.7 53.7 55.2 55.8 54.1 56.6 52.5 54.1 56.9
"""
_COLUMNS = np.array([line.split()[1:] for line in _PRINTED.split("\n") if line], dtype=float).T

#: Average precisions by table of a paper, machine and norm, one for each object.
PRINTED: dict[tuple[str, str], dict[str, dict[str, np.ndarray]]] = {
    ("Yan et al. 2010", "Table 2"): {
        SVM: dict(zip(NORMS, _COLUMNS[:4], strict=True)),
        FDA_TRACE: dict(zip(NORMS, _COLUMNS[4:8], strict=True)),
    },
    ("Yan et al. 2012", "Table 1"): {
        SVM: dict(zip(("ℓ1", "ℓ∞", "ℓp"), _COLUMNS[[0, 2, 3]], strict=True)),
        FDA: dict(zip(("ℓ1", "ℓ∞", "ℓp"), _COLUMNS[8:], strict=True)),
    },
}


# -- data ----------------------------------------------------------------------------------

#: Distances between all samples by view, and kinds.
Distances = tuple[dict[str, np.ndarray], np.ndarray]


def flower17(folder: Path) -> Distances:
    """Ten views of photographs; the features are kept in the folder."""
    paths, y = _data.flower17()
    return distances(paths, folder), y


def scene15(folder: Path) -> Distances:
    """Squared and absolute differences in three views of a hundred photographs of each kind."""
    views, y = _data.scene15()
    rows = np.concatenate(
        [np.flatnonzero(y == kind)[: sum(SIZES["scene15"])] for kind in np.unique(y)]
    )
    found = {}
    for name, view in views.items():
        scaled = (view[rows] - view[rows].mean(axis=0)) / np.maximum(view[rows].std(axis=0), 1e-12)
        for metric in ("sqeuclidean", "cityblock"):
            found[f"{name}, {metric}"] = cdist(scaled, scaled, metric)
    return found, y[rows]


LOADERS = {"flower17": flower17, "scene15": scene15}


def drawn(y: np.ndarray, sizes: tuple[int, int, int]) -> list[np.ndarray]:
    """Rows of each kind to learn from, to choose with, and to judge on."""
    rng = np.random.default_rng(0)
    parts: list[list[np.ndarray]] = [[], [], []]
    for kind in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == kind))[: sum(sizes)]
        for part, rows in zip(parts, np.split(members, np.cumsum(sizes)[:-1]), strict=True):
            part.append(rows)
    return [np.sort(np.concatenate(part)) for part in parts]


def kernels_of(
    matrices: dict[str, np.ndarray], train: np.ndarray, *others: np.ndarray
) -> list[KernelStack]:
    """Kernels exp(−D/η) of training rows, and of other rows with them; η the mean distance."""
    union = KernelUnion([(name, FromDistances(matrix)) for name, matrix in matrices.items()])
    union.fit(train[:, None])
    return [union(train[:, None]), *(union(rows[:, None], train[:, None]) for rows in others)]


# -- measurements --------------------------------------------------------------------------


def precision(model: Any, stack: KernelStack, labels: np.ndarray) -> float:
    """Average precision in per cent."""
    return 100 * float(average_precision_score(labels, model.decision_function(stack)))


def measured(matrices: dict[str, np.ndarray], y: np.ndarray, name: str, quick: bool) -> dict:
    """All machines on every kind against the rest."""
    train, validation, test = drawn(y, (6, 4, 5) if quick else SIZES[name])
    learn, choose, judge = kernels_of(matrices, train, validation, test)
    both = np.concatenate([train, validation])
    learn_both, judge_both = kernels_of(matrices, both, test)
    kinds = np.unique(y)[: 2 if quick else None]
    ps = PS[::3] if quick else PS
    found: dict[str, dict[str, Any]] = {
        machine: {
            "precision": {norm: [] for norm in NORMS},
            "p": [],
            "validation": [],
            "test": [],
            "n_used": [],
        }
        for machine in MACHINES
    }
    for kind in shown(kinds, name, len(kinds)):
        signs = {id(rows): (y[rows] == kind).astype(int) for rows in (train, validation, test)}
        y_train, y_validation, y_test = signs.values()
        y_both = np.concatenate([y_train, y_validation])
        for machine, (search, plain, parameter, values, normalize) in MACHINES.items():
            values = values[::2] if quick else values
            grid = {"ps": list(ps), f"{parameter}s": list(values)}
            options = {"kernels": "precomputed", "normalize": normalize}
            searched = search(
                **options, **grid, cv=(choose, y_validation), scoring="average_precision"
            ).fit(learn, y_train)
            curve = np.asarray(searched.validation_curve())
            best = curve.argmax(axis=1)
            part = found[machine]
            part["validation"].append(100 * curve.max(axis=1))
            part["p"].append(float(ps[int(curve.max(axis=1).argmax())]))
            tests, used = [], []
            for p, at in zip(ps, best, strict=True):
                model = plain(**options, p=p, **{parameter: values[at]}).fit(learn, y_train)
                tests.append(precision(model, judge, y_test))
                used.append(np.count_nonzero(model.weights_ > USED * model.weights_.max()))
            part["test"].append(tests)
            part["n_used"].append(used)
            for norm in NORMS:
                p = FIXED.get(norm, part["p"][-1])
                if p not in ps:
                    p = ps[0]  # of a quick run
                value = values[best[ps.index(p)]]
                model = plain(**options, p=p, **{parameter: value}).fit(learn_both, y_both)
                part["precision"][norm].append(precision(model, judge_both, y_test))
    for part in found.values():
        for curve_name in ("validation", "test", "n_used"):
            part[curve_name] = np.mean(part[curve_name], axis=0)
        part["p"] = ["∞" if p == np.inf else f"{p:g}" for p in part["p"]]
    return {
        "n_rows": [len(train), len(validation), len(test)],
        "n_kernels": learn.n_kernels,
        "kinds": [str(kind) for kind in kinds],
        "ps": ["∞" if p == np.inf else f"{p:g}" for p in ps],
        "machines": found,
        "alignment": alignments(learn),
    }


def alignments(stack: KernelStack) -> dict[str, list[float]]:
    """Least, mean and largest alignment of two kernels, as they are and centred."""
    pairs = np.triu_indices(stack.n_kernels, 1)
    found = {}
    for name, centred in (("as they are", False), ("centred", True)):
        values = np.asarray(stack.alignment(centered=centred))[pairs]
        found[name] = [values.min(), values.mean(), values.max()]
    return found


# -- rows beside the papers ----------------------------------------------------------------


def comparisons(table: dict[str, dict[str, Any]]) -> list[tuple[str, tuple[str, str], tuple]]:
    """What a table compares: a label, and machine and norm of the two."""
    svm, fda = table
    found = [
        (f"{machine}: ℓp less {norm}", (machine, "ℓp"), (machine, norm))
        for machine, norms in table.items()
        for norm in norms
        if norm != "ℓp"
    ]
    found += [(f"{fda} less {svm}: {norm}", (fda, norm), (svm, norm)) for norm in table[fda]]
    return found


def rows_of(paper: tuple[str, str], name: str, part: dict[str, Any]) -> list[PaperRow]:
    """Differences of mean average precisions, with errors over the kinds of objects."""
    table, rows = PRINTED[paper], []
    for label, one, two in comparisons(table):
        theirs = table[one[0]][one[1]] - table[two[0]][two[1]]
        first, second = (
            np.array(part["machines"][machine]["precision"][norm]) for machine, norm in (one, two)
        )
        ours = first - second
        error = standard_error(
            *((float(np.std(values, ddof=1)), len(values)) for values in (theirs, ours))
        )
        means = float(np.mean(theirs)), float(np.mean(ours))
        rows.append(PaperRow(*paper, name, label, *means, error, same_data=False))
    return rows


def paper_rows(results: Results) -> list[PaperRow]:
    """Rows of both tables, for each data set."""
    return [
        row
        for paper in PRINTED
        for name, part in results.items()
        for row in rows_of(paper, name, part)
    ]


# -- the page ------------------------------------------------------------------------------


def precision_table(part: dict[str, Any]) -> str:
    """Mean average precisions."""
    rows = [
        [machine, *(f"{np.mean(one['precision'][norm]):.1f}" for norm in NORMS)]
        for machine, one in part["machines"].items()
    ]
    return markdown(["mean average precision", *NORMS], rows)


def curve_table(part: dict[str, Any]) -> str:
    """What the norm does: average precisions and numbers of kernels, means over kinds."""
    rows = []
    for machine, one in part["machines"].items():
        for what, label, shape in (
            ("validation", "validation", "{:.1f}"),
            ("test", "test", "{:.1f}"),
            ("n_used", "kernels used", "{:.1f}"),
        ):
            rows.append([machine, label, *map(shape.format, one[what])])
        chosen = [str(one["p"].count(p)) for p in part["ps"]]
        rows.append([machine, "kinds that chose it", *chosen])
    return markdown(["", "", *(f"p = {p}" for p in part["ps"])], rows, n_left=2)


def statements(name: str, part: dict[str, Any]) -> list[str]:
    """What the figures of the paper say, and what is found here."""
    lines = []
    for machine in (SVM, FDA):
        one = part["machines"][machine]
        spread = min(np.ptp(one["validation"]), np.ptp(one["test"]))
        match = np.corrcoef(one["validation"], one["test"])[0, 1] if spread else float("nan")
        lines.append(
            f"Fig. 4, {name}, {machine}: correlation of validation and test precision over p "
            f"{match:.2f}; paper: the two curves match well."
        )
        lines.append(
            f"Fig. 3, {name}, {machine}: {one['n_used'][0]:.1f} kernels used at p = 1, "
            f"{one['n_used'][-1]:.1f} at p = ∞; paper: the fewer the smaller p."
        )
    plain, centred = (part["alignment"][key][1] for key in ("as they are", "centred"))
    lines.append(
        f"Fig. 5, {name}: mean alignment of two kernels {plain:.2f}, centred {centred:.2f}; "
        "paper: centring changes it much (a picture without numbers)."
    )
    return lines


def page(results: Results) -> str:
    """The page of the documentation."""
    _, _, *paragraphs = (__doc__ or "").strip().split("\n\n")
    text = " ".join(" ".join(paragraphs).split())
    sizes = "; ".join(
        f"{name}: {part['n_kernels']} kernels, {' + '.join(map(str, part['n_rows']))} pictures"
        for name, part in results.items()
    )
    parts = [
        "# Norms for each object, beside Yan et al. (2010, 2012)",
        f"Written by `python -m benchmarks.voc --write`. {text}",
        f"To learn from, to choose with and to judge on: {sizes}. Seven norms and five values of "
        "C (¼ to 64) or λ; the papers have twelve and ten. In the paper of 2012 kernels have unit "
        "diagonal and λ from 4⁻⁵ to 4⁴, in that of 2010 MK-FDA has kernels of unit trace and λ "
        "from 10⁻⁸ to 10.",
        "Levels on other data cannot be compared. What can be is how much one norm or machine "
        "gains over another. Rows are differences of mean average precisions in points; standard "
        "errors are those over the kinds of objects, of the paper's 20 and of ours.",
        environments(results),
        "## Summary",
        f"{counted(paper_rows(results))}.",
        "\n".join(
            f"- {line}" for name, part in results.items() for line in statements(name, part)
        ),
    ]
    for paper in PRINTED:
        parts.append(f"## {paper[0]}, {paper[1]}")
        parts += [paper_table(rows_of(paper, name, part)) for name, part in results.items()]
    for name, part in results.items():
        parts += [
            f"## {name}",
            precision_table(part),
            "By norm, at the λ or C that is best for it on the validation set (Figs. 1 and 2 of "
            "2010, Figs. 3 and 4 of 2012), models of the training set alone, means over kinds:",
            curve_table(part),
        ]
    return "\n\n".join(parts) + "\n"


# -- command line --------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if the data of a set were missing."""
    parser = command_line("voc", "Norms for each object, Yan et al.", list(LOADERS))
    parser.add_argument("--features", type=Path, default=FOLDER, help="folder of features")
    options = parser.parse_args(arguments)
    results: Results = {}
    with threadpool_limits(1):
        for name in options.sets:
            data = load(name, lambda name=name: LOADERS[name](options.features))  # type: ignore[misc]
            if data is None:
                continue
            found = measured(*data, name, options.quick)
            results[name] = found
            if options.write:
                write_results("voc", {name: found}, page, list(LOADERS))
    if results and not options.write:
        print(page(with_environment(results)))
    return int(len(results) < len(options.sets))


if __name__ == "__main__":
    sys.exit(main())

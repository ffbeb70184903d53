"""A public benchmark of solvers for multiple kernel learning.

    python -m benchmarks.solvers [--quick] [--sets easy] [--methods newton sip] [--write]

All methods are given the same kernel matrices and minimise the same convex function of the kernel
weights β ≥ 0, ‖β‖_p ≤ 1:

- *square*: ``max_α tr(Hᵀα) − ‖α‖²/4 − tr(αᵀK_βα)/(4λ)``, the discriminant of ``MKFDA``;
- *hinge*: ``max_v Σ yᵀv − vᵀK_βv/2`` with 0 ≤ y∘v ≤ C and Σ v = 0, the machines of ``MKSVC``.

A method returns weights and, if it has them, dual variables. ``Problem.rel_gap`` computes from
these and the kernels alone how far the weights are from the optimum, with none of the code of any
method: an upper bound on the function at the weights by a primal solution of its own, and a lower
bound on the minimum by the dual variables, those of the method or its own. A method succeeds if
the relative gap is within the tolerance that it was asked for, within the time limit.

Times are seconds of the processor with one thread, after a run on few samples. Their mean over all
problems is the geometric one, shifted by 0.01 s: ``exp(mean(log(t + 0.01))) − 0.01``; a failure
counts as the time limit, and so does a problem that the method refuses. A method that fails at one
tolerance is not asked for smaller ones.

To add a method, write a function of a ``Problem``, a tolerance and a limit in seconds that returns
weights and dual variables (or None), and enter it in ``METHODS``; it raises NotImplementedError if
it does not take a problem. One that needs an environment of its own goes into
``_solvers_runner.py``. Kernels come from data of scikit-learn or are made up, so that nothing has
to be downloaded. The last two libraries minimise other functions; they are run if
``MANYKERNELS_HIMALAYA`` and ``MANYKERNELS_MKLPY`` name a Python that has them, and are not ranked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import clarabel
import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks._command import Results, command_line, report
from benchmarks._solvers_runner import limited
from benchmarks._tables import environments, markdown
from manykernels import KernelStack
from manykernels.domains import lp_domain
from manykernels.losses.square import SquareLoss
from manykernels.losses.svm import HingeLoss
from manykernels.solvers import SOLVERS
from manykernels.solvers.base import Problem as Task
from manykernels.solvers.base import complaint

RUNNER = Path(__file__).with_name("_solvers_runner.py")
TOLERANCES = (1e-2, 1e-4, 1e-6)
LIMIT = 1.0
SHIFT = 0.01
_ENDLESS = 10**6  # time decides, not iterations

Answer = tuple[np.ndarray, np.ndarray | None]
Method = Callable[["Problem", float, float], Answer]


# -- problems and their judge ---------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Kernels (n, m, m), targets (m, c), p, and C (hinge) or λ (square)."""

    name: str
    loss: str
    kernels: np.ndarray
    targets: np.ndarray
    p: float
    strength: float

    def __str__(self) -> str:
        return f"{self.name}, {self.loss}, p = {self.p:g}"

    def part(self, n_samples: int = 40) -> Problem:
        """The same with few of the kernels and samples."""
        rows = np.linspace(0, len(self.targets) - 1, n_samples).astype(int)
        kernels = np.ascontiguousarray(self.kernels[:8, rows[:, None], rows])
        return replace(self, kernels=kernels, targets=self.targets[rows])

    def support(self, gains: np.ndarray) -> float:
        """Largest ``β · gains`` of all weights, the dual norm of the gains."""
        if self.p == 1.0:
            return float(gains.max())
        return float(np.linalg.norm(gains, self.p / (self.p - 1.0)))

    def forms(self, dual: np.ndarray) -> np.ndarray:
        """``tr(αᵀK_jα)`` of every kernel."""
        return np.einsum("ik,jil,lk->j", dual, self.kernels, dual, optimize=True)

    def rel_gap(
        self, weights: np.ndarray, dual: np.ndarray | None = None, enough: float = 0.0
    ) -> float:
        """Relative distance of weights from the optimum, at most; infinite if they are invalid.

        The judge solves for dual variables of its own, unless those of the method prove `enough`.
        """
        weights = np.asarray(weights, dtype=float)
        norm = np.linalg.norm(weights, self.p)
        if not np.isfinite(norm) or weights.min() < -1e-12 or norm == 0.0:
            return float("inf")
        weights = np.maximum(weights, 0.0) / max(norm, 1.0)
        K = np.tensordot(weights, self.kernels, 1)
        upper, lower = np.inf, -np.inf
        if dual is not None and np.all(np.isfinite(dual)):
            dual = np.reshape(dual, self.targets.shape)
            upper, lower = self._upper(K, dual), self._lower(dual)
        if upper - lower > enough * abs(upper) or not np.isfinite(upper):
            own = self._inner(K)
            upper, lower = min(upper, self._upper(K, own)), max(lower, self._lower(own))
        return (upper - lower) / abs(upper)

    def _inner(self, K: np.ndarray) -> np.ndarray:
        """Dual variables at K."""
        if self.loss == "square":
            A = np.eye(len(K)) + K / self.strength
            return 2.0 * np.linalg.solve(A, self.targets)
        return np.column_stack([_machine(K, y, self.strength) for y in self.targets.T])

    def _lower(self, dual: np.ndarray) -> float:
        """Lower bound on the minimum over all weights."""
        if self.loss == "square":
            linear = np.vdot(self.targets, dual) - np.vdot(dual, dual) / 4.0
            return float(linear - self.support(self.forms(dual)) / (4.0 * self.strength))
        feasible = _feasible(dual, self.targets, self.strength)
        linear, support = np.vdot(self.targets, feasible), self.support(self.forms(feasible))
        # Smaller multiples are feasible, too.
        scale = min(1.0, linear / support) if support > 0.0 else 1.0
        return float(scale * linear - 0.5 * scale**2 * support)

    def _upper(self, K: np.ndarray, dual: np.ndarray) -> float:
        """Upper bound on the function at K: its primal problem at coefficients of these duals."""
        if self.loss == "square":
            coefficients = dual / (2.0 * self.strength)
            residuals = self.targets - K @ coefficients
            norm = self.strength * np.vdot(coefficients, K @ coefficients)
            return float(np.vdot(residuals, residuals) + norm)
        total = 0.0
        for v, y in zip(dual.T, self.targets.T, strict=True):
            outputs = K @ v
            # The loss is piecewise linear in the bias, with its kinks where a margin is one.
            losses = np.maximum(1.0 - y * (outputs + (y - outputs)[:, None]), 0.0).sum(axis=1)
            total += 0.5 * v @ outputs + self.strength * losses.min()
        return float(total)


def _feasible(dual: np.ndarray, signs: np.ndarray, C: float) -> np.ndarray:
    """Variables inside the box whose sum is zero."""
    v = signs * np.clip(signs * dual, 0.0, C)
    for column in v.T:
        positive, negative = column[column > 0.0].sum(), -column[column < 0.0].sum()
        if positive > negative:
            column[column > 0.0] *= negative / positive
        elif negative > positive:
            column[column < 0.0] *= positive / negative
    return v


def _machine(K: np.ndarray, y: np.ndarray, C: float) -> np.ndarray:
    """Dual variables of a support vector machine, by an interior-point method."""
    m = len(K)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-10
    rows = sparse.vstack(
        [sparse.csc_matrix(np.ones((1, m))), sparse.diags(y), -sparse.diags(y)], format="csc"
    )
    bounds = np.concatenate([[0.0], np.full(m, C), np.zeros(m)])
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * m)]
    quadratic = sparse.csc_matrix(np.triu(K))
    solver = clarabel.DefaultSolver(quadratic, -y, rows, bounds, cones, settings)
    return np.asarray(solver.solve().x)


def gaussians(X: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Gaussian kernels of widths around the median distance."""
    squares = euclidean_distances(StandardScaler().fit_transform(X), squared=True)
    return np.exp(-np.multiply.outer(factors, squares / np.median(squares)))


def easy() -> tuple[np.ndarray, np.ndarray]:
    """Six Gaussian kernels, two classes that are easily told apart."""
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:200]
    return gaussians(X[rows], np.logspace(-1, 1, 6)), y[rows]


def degenerate() -> tuple[np.ndarray, np.ndarray]:
    """Twelve kernels of which three differ: optimal weights are not unique."""
    kernels, y = easy()
    return kernels[[0, 0, 0, 0, 3, 3, 3, 3, 5, 5, 5, 5]], y


def many_kernels() -> tuple[np.ndarray, np.ndarray]:
    """500 Gaussian kernels of three columns each, 80 samples, noisy classes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 20))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(80) > 0.0).astype(int)
    columns = [rng.choice(20, 3, replace=False) for _ in range(500)]
    return np.concatenate([gaussians(X[:, some], np.ones(1)) for some in columns]), y


def many_classes() -> tuple[np.ndarray, np.ndarray]:
    """Eight Gaussian kernels of handwritten digits, ten classes."""
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:200]
    X = X[rows][:, X.std(axis=0) > 0]
    return gaussians(X, np.logspace(-1.5, 1, 8)), y[rows]


def low_rank() -> tuple[np.ndarray, np.ndarray]:
    """Thirty linear kernels of one column each."""
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(1).permutation(len(y))[:200]
    X = StandardScaler().fit_transform(X[rows])
    return np.einsum("ij,kj->jik", X, X), y[rows]


SETS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "easy": easy,
    "degenerate": degenerate,
    "many kernels": many_kernels,
    "many classes": many_classes,
    "low rank": low_rank,
}
#: C of the hinge loss and λ of the square loss; a nearly unregularised one where it is hardest.
STRENGTHS = {"degenerate": (1e4, 1e-5)}
USUAL = (1.0, 0.1)


def problems(name: str) -> Iterator[Problem]:
    """Both losses at p = 1 and p = 2, on centred kernels of unit variance."""
    kernels, labels = SETS[name]()
    means = kernels.mean(axis=1)
    kernels = kernels - means[:, :, None] - means[:, None, :]
    kernels += means.mean(axis=1)[:, None, None]
    kernels /= np.einsum("jii->j", kernels)[:, None, None] / len(labels)
    classes = np.unique(labels)
    indicators = np.column_stack(
        [labels == k for k in (classes[1:] if len(classes) == 2 else classes)]
    )
    C, reg = STRENGTHS.get(name, USUAL)
    signs = np.where(indicators, 1.0, -1.0)
    targets = indicators - indicators.mean(axis=0)
    for p in (1.0, 2.0):
        yield Problem(name, "hinge", kernels, signs, p, C)
        yield Problem(name, "square", kernels, targets / targets.std(axis=0), p, reg)


# -- methods --------------------------------------------------------------------------------------


def ours(solver: str, problem: Problem, tol: float, limit: float) -> Answer:
    """A solver of this library."""
    stack = KernelStack(
        problem.kernels, [f"{j}" for j in range(len(problem.kernels))], gram=True, checked=True
    )
    begin = time.process_time()
    if problem.loss == "hinge":
        # Machines are solved more accurately than the weights, as in MKSVC.
        loss: Any = HingeLoss(stack, problem.targets, problem.strength, inner_tol=1e-3 * tol)
    else:
        loss = SquareLoss(stack, problem.targets, problem.strength)
    domain = lp_domain(problem.p)
    method = SOLVERS[solver]()
    if reason := complaint(method, Task(loss.spec, domain, tol)):
        raise NotImplementedError(reason)
    solution = method.solve(
        loss,
        domain,
        tol=tol,
        max_iter=_ENDLESS,
        observer=lambda progress: time.process_time() - begin > limit,
    )
    return solution.weights, solution.certificate.dual_point


METHODS: dict[str, Method] = {name: partial(ours, name) for name in SOLVERS}
#: Methods of `_solvers_runner.py`, and what each is. They run in this Python, or in the one that a
#: variable of the environment names.
PEERS = {
    "SimpleMKL": "SimpleMKL (Rakotomamonjy et al. 2008) written in NumPy, machines by LIBSVM",
    "cvxpy": "the dual as a conic program, CVXPY with Clarabel",
    "SLSQP": "sequential quadratic programming of SciPy on the function of the weights",
    "himalaya": "himalaya, kernel weights by the gradient of the error in five folds",
    "EasyMKL": "EasyMKL of MKLpy",
}
VARIABLES = {"himalaya": "MANYKERNELS_HIMALAYA", "EasyMKL": "MANYKERNELS_MKLPY"}
PACKAGES = {"cvxpy": "cvxpy", "himalaya": "himalaya", "EasyMKL": "MKLpy"}
UNRANKED = tuple(VARIABLES)


def run_method(method: Method, problem: Problem) -> Iterator[dict[str, Any]]:
    """Results of one method at every tolerance, until it fails."""

    def attempt(problem: Problem, tol: float) -> Answer | str:
        try:
            return method(problem, tol, LIMIT)
        except NotImplementedError as refusal:
            return str(refusal)

    with threadpool_limits(1):
        attempt(problem.part(), TOLERANCES[0])  # imports and compilation
        for tol in TOLERANCES:
            run = limited(partial(attempt, problem, tol), LIMIT)
            if isinstance(run["result"], str):
                yield {"end": f"refused: {run['result']}"}
                return
            result = judged(problem, tol, run["seconds"], *(run["result"] or (None, None)))
            yield result
            if result["end"] != "solved":
                return


def judged(
    problem: Problem, tol: float, seconds: float, weights: Any, dual: Any
) -> dict[str, Any]:
    """What a method has reached."""
    if weights is None:
        return {"tol": tol, "seconds": seconds, "end": "too slow or an error"}
    dual = None if dual is None else np.asarray(dual, dtype=float)
    gap = problem.rel_gap(np.asarray(weights, dtype=float), dual, enough=tol)
    # A solver that is stopped at the limit has finished its last step.
    in_time = seconds <= 1.1 * LIMIT
    end = (
        "solved" if gap <= tol and in_time else "too slow" if gap <= tol or not in_time else "gap"
    )
    return {"tol": tol, "seconds": seconds, "gap": float(min(gap, 1e300)), "end": end}


def run_peer(name: str, listed: list[Problem]) -> list[list[dict[str, Any]]] | None:
    """Results of a method of the runner on all problems, in one process of its own."""
    python = os.environ.get(VARIABLES[name]) if name in VARIABLES else sys.executable
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        for k, problem in enumerate([listed[0].part(), *listed]):
            np.savez(Path(folder) / f"{k}.npz", **vars(problem))
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        paths = [str(Path(folder) / f"{k}.npz") for k in range(1 + len(listed))]
        tolerances = ",".join(f"{tol:g}" for tol in TOLERANCES)
        done = subprocess.run(
            [python, str(RUNNER), name, tolerances, f"{LIMIT:g}", *paths],
            env={**os.environ, **one},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        print(f"{name} failed: {reason}", file=sys.stderr)
        return None
    results = []
    for problem, line in zip(listed, done.stdout.splitlines(), strict=True):
        found: list[dict[str, Any]] = []
        for answer in json.loads(line):
            if "refused" in answer:
                found.append({"end": f"refused: {answer['refused']}"})
                break
            found.append(
                judged(problem, *(answer[key] for key in ("tol", "seconds", "weights", "dual")))
            )
            if found[-1]["end"] != "solved":
                break
        results.append(found)
    return results


def measured(name: str, methods: list[str]) -> dict[str, Any]:
    """All methods on all problems of one set."""
    listed = list(problems(name))
    n, m, _ = listed[0].kernels.shape
    found: dict[str, Any] = {}
    for method in methods:
        if method in METHODS:
            results = [list(run_method(METHODS[method], problem)) for problem in listed]
        else:
            results = run_peer(method, listed)
        if results is None:
            continue
        found[method] = {
            f"{problem.loss}, p = {problem.p:g}": result
            for problem, result in zip(listed, results, strict=True)
        }
        ends = [result[-1].get("end") for result in results]
        print(f"{name}, {method}: {', '.join(map(str, ends))}", file=sys.stderr, flush=True)
    peers = peer_versions([method for method in methods if method in found])
    sizes = {"n_kernels": n, "n_samples": m, "n_outputs": listed[0].targets.shape[1]}
    title = (SETS[name].__doc__ or "").rstrip(".")
    return {**sizes, "title": title, "limit": LIMIT, "peers": peers, "methods": found}


def peer_versions(methods: list[str]) -> dict[str, str]:
    """Versions of the other libraries, by their names on the package index."""
    found = {}
    for method, package in PACKAGES.items():
        if method in methods:
            python = os.environ.get(VARIABLES.get(method, ""), sys.executable)
            code = f"from importlib.metadata import version; print(version({package!r}))"
            done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
            found[package] = done.stdout.strip()
    return found


# -- the page -------------------------------------------------------------------------------------


def times(results: Results, method: str, tol: float, loss: str = "") -> tuple[list[float], int]:
    """Seconds on every problem, with the limit for failures, and the number of successes."""
    seconds, solved = [], 0
    for part in results.values():
        for problem, tried in part["methods"].get(method, {}).items():
            if not problem.startswith(loss):
                continue
            good = [one for one in tried if one.get("tol") == tol and one["end"] == "solved"]
            solved += len(good)
            seconds.append(good[0]["seconds"] if good else part["limit"])
    return seconds, solved


def shifted_mean(seconds: list[float]) -> float:
    """Shifted geometric mean."""
    return float(np.exp(np.mean(np.log(np.array(seconds) + SHIFT))) - SHIFT)


def page(results: Results) -> str:
    """The page of the documentation."""
    paragraphs = (__doc__ or "").replace("``", "`").strip().split("\n\n")[2:]
    names = list(dict.fromkeys(name for part in results.values() for name in part["methods"]))
    ranked = [name for name in names if name not in UNRANKED]
    parts = [
        "# Solvers: a public benchmark",
        "Written by `python -m benchmarks.solvers --write`.",
        *(text if text.startswith("- ") else " ".join(text.splitlines()) for text in paragraphs),
        environments(results),
        peers_line(results),
        "## Problems",
        f"The time limit is {next(iter(results.values()))['limit']:g} s.",
        problems_table(results),
        "## Results",
    ]
    for loss in ("hinge", "square"):
        parts += [f"### {loss.capitalize()} loss", ranking(results, ranked, loss)]
    if other := [name for name in UNRANKED if name in names]:
        parts += ["## Libraries with other objectives", others_section(results, other)]
    if missing := [name for name in PEERS if name not in names]:
        parts.append(f"Not measured: {', '.join(missing)}.")
    for name, part in results.items():
        parts += [f"## {name.capitalize()}", details(part, ranked)]
    return "\n\n".join(parts) + "\n"


def peers_line(results: Results) -> str:
    """Versions of the other libraries."""
    found = {name: number for part in results.values() for name, number in part["peers"].items()}
    return f"Others: {', '.join(f'{name} {number}' for name, number in found.items()) or 'none'}."


def problems_table(results: Results) -> str:
    rows = [
        [
            name,
            part["title"],
            *(str(part[key]) for key in ("n_samples", "n_kernels", "n_outputs")),
            *(f"{value:g}" for value in STRENGTHS.get(name, USUAL)),
        ]
        for name, part in results.items()
    ]
    header = ["set", "kernels", "samples", "kernels", "outputs", "C", "λ"]
    return markdown(header, rows, n_left=2)


def ranking(results: Results, names: list[str], loss: str) -> str:
    """Successes and shifted geometric means, best first; refused by none of the problems."""
    rows = []
    for name in names:
        cells: list[str] = []
        key: list[float] = []
        for tol in TOLERANCES:
            seconds, solved = times(results, name, tol, loss)
            cells += [f"{solved} of {len(seconds)}", f"{shifted_mean(seconds):.3g}"]
            key += [-solved, shifted_mean(seconds)]
        if not all(value == 0 for value in key[::2]):
            rows.append((key[4:] + key[2:4] + key[:2], [name, *cells]))
    header = ["method"]
    for tol in TOLERANCES:
        header += [f"solved to {tol:g}", "seconds"]
    return markdown(header, [cells for _, cells in sorted(rows, key=lambda row: row[0])])


def others_section(results: Results, names: list[str]) -> str:
    """How far weights that minimise something else are from the optimum."""
    rows = []
    for set_name, part in results.items():
        for name in names:
            for problem, tried in part["methods"].get(name, {}).items():
                if "gap" in tried[0]:
                    first = tried[0]
                    rows.append(
                        [set_name, problem, name, f"{first['gap']:.1e}", f"{first['seconds']:.3g}"]
                    )
    note = (
        "Their weights, scaled to the norm, as solutions of the problem above. A large gap is no "
        "fault: they minimise another function."
    )
    return f"{note}\n\n{markdown(['set', 'problem', 'library', 'gap', 'seconds'], rows, n_left=3)}"


def details(part: dict[str, Any], names: list[str]) -> str:
    """The gap reached and the time at the smallest tolerance that was tried."""
    columns = list(next(iter(part["methods"].values())))
    rows = []
    for name in names:
        cells = []
        for problem in columns:
            tried = part["methods"].get(name, {}).get(problem, [])
            last = tried[-1] if tried else {"end": ""}
            if last["end"] == "too slow or an error":
                cells.append(f"{last['end']} at {last['tol']:g}")
            elif "gap" in last:
                word = "" if last["end"] == "solved" else f", {last['end']} at {last['tol']:g}"
                cells.append(f"{max(last['gap'], 0.0):.0e} in {last['seconds']:.2g} s{word}")
            else:
                cells.append("refused" if last["end"] else "")
        rows.append([name, *cells])
    return markdown(["gap and seconds of the last run", *columns], rows)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    names = [*METHODS, *PEERS]
    parser = command_line("solvers", "Solvers for multiple kernel learning.", list(SETS))
    parser.add_argument("--methods", nargs="+", choices=names, default=names)
    options = parser.parse_args(arguments)
    sets = options.sets[:1] if options.quick else options.sets
    results = {name: measured(name, options.methods) for name in sets}
    report("solvers", results, page, options.write, SETS)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Support vector machines: SMO against LIBSVM, and solvers for the weights of their kernels.

    python -m benchmarks.svm [--quick] [--sets mfeat,sonar] [--write]

One machine on one kernel: ``manykernels.smo.solve_box`` and scikit-learn's
``SVC(kernel="precomputed")``, that is LIBSVM, both to violations of 1e-3,

- cold: both from nothing;
- warm: after 3 % of another kernel are mixed in, ours from the old solution, LIBSVM, which cannot
  start from one, from nothing.

Ours includes the products with the kernel, copies of its parts (shrinking) and the proof of the
gap. ``SVC.fit`` includes checks and copies of scikit-learn; their time is that of a fit with one
iteration, and a second ratio leaves it out. LIBSVM keeps rows of the kernel in single precision,
in at most 200 MB (``cache_size``), which all of the rows fit into here. Its dual variables are
put into the same formulas for the gap as ours.

Weights and machine, hinge loss, kernels of variance one in feature space: Newton for three p and
three C, then the other solvers at p = 1, all to a true relative gap of 1e-4, machines to 1e-7 as
in MKSVC. A solve trains all machines of a problem once. "silp" knows the bound that the mixture
of all cuts proves, "silp, weights alone" only that of its last weights, as in the papers. Rounds
of the interleaved solver, which train no machine to the end, count as one solve per machine.

Seconds are those of the processor with one thread, best of several, contenders in turn. The
compilation of the loops is measured apart.
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks import _svm_outer as outer
from benchmarks import _svm_single as single
from benchmarks._command import Results, command_line, load, report
from benchmarks._svm_sets import MACHINES, PROBLEMS
from benchmarks._tables import environments

SETS = list(dict.fromkeys([*MACHINES, *PROBLEMS]))


def _duels(results: Results) -> list[single.Duel]:
    """Both SMO on every set, as they were measured."""
    return [
        single.from_values(duel) for part in results.values() for duel in part.get("duels", [])
    ]


def _solvers(results: Results) -> list[outer.Result]:
    """All solvers on every set, as they were measured."""
    return [
        outer.from_values(name, part["solvers"])
        for name, part in results.items()
        if "solvers" in part
    ]


def page(results: Results) -> str:
    """The page of the documentation."""
    duels, solvers = _duels(results), _solvers(results)
    compilation = results.get("compilation", {}).get("seconds")
    parts = [
        "# Support vector machines",
        "Written by `python -m benchmarks.svm --write`. Seconds are those of the processor with "
        "one thread, best of several runs, contenders in turn.",
        environments(results),
        "## Verdicts",
        "\n".join(f"- {line}" for line in verdicts(duels, solvers)),
        "## SMO against LIBSVM on one kernel",
        f'`solve_box` and `SVC(kernel="precomputed").fit`, both to violations of {single.TOL:g}.'
        " Ours includes products with the kernel, the copies that shrinking makes and the proof "
        "of the gap; `SVC.fit` the checks and copies of scikit-learn, which take as long as a fit "
        "with one iteration: the column beside LIBSVM's time, left out in the ratio to the loop "
        "alone. LIBSVM keeps rows of the kernel in single precision, up to 200 MB by default "
        "(`cache_size`); all rows of these kernels fit. The gap is (P − D)/|D|, for LIBSVM's dual "
        "variables by the same formulas.",
        *([single.compile_line(*compilation)] if compilation else []),
        "### Cold",
        single.cold_table(duels),
        "### Warm",
        f"K' = {1 - single.CHANGE:g} K + {single.CHANGE:g} K₂. Ours starts at the solution for K, "
        "LIBSVM from nothing.",
        single.warm_table(duels),
        "## Weights and machine",
        f'Hinge loss on kernels of variance one (`normalize="multiplicative"`), to a true '
        f"relative gap of {outer.TOL:g}; machines to {outer.INNER_TOL:g}, as in MKSVC. A solve "
        "trains all machines of a problem once, from where they were; rounds of the interleaved "
        "solver, which trains none to the end, count once per machine. A solver that takes "
        f"{outer.PATIENCE:g} times as long as Newton (at least {outer.LEAST_BUDGET:g} s, at most "
        f"{outer.MOST_BUDGET:g} s) is stopped at the next iteration; its ratio is then a lower "
        'bound. "silp" knows the bound that the mixture of all cuts proves, "silp, weights '
        "alone\" that of its weights only, as in the papers. Newton's p = 1 is measured again in "
        "turn with the others.",
    ]
    for result in solvers:
        parts += [f"### {result.title}", outer.newton_table(result.newton)]
        parts += ["At p = 1:", outer.others_table(result)]
    return "\n\n".join(parts) + "\n"


def verdicts(duels: list[single.Duel], results: list[outer.Result]) -> list[str]:
    return [*single.verdicts(duels), *outer.verdicts(results)]


def run_single(name: str, quick: bool) -> list[single.Duel] | None:
    """Both SMO on a set; None if its data are missing."""
    machine = load(name, lambda: MACHINES[name](quick))
    if machine is None:
        return None
    print(f"{machine}\n", flush=True)
    duels = [single.duel(machine, C) for C in single.PENALTIES]
    print(f"{single.cold_table(duels)}\n\n{single.warm_table(duels)}\n", flush=True)
    return duels


def run_outer(name: str, quick: bool) -> outer.Result | None:
    """All solvers on a set; None if its data are missing."""
    penalties = outer.QUICK_PENALTIES if quick else outer.PENALTIES
    problem = load(name, lambda: PROBLEMS[name](quick))
    if problem is None:
        return None
    print(f"{problem}\n", flush=True)
    newton = outer.run_newton(problem, penalties, outer.NORMS, _progress)
    print(f"{outer.newton_table(newton)}\n", flush=True)
    others = outer.run_others(problem, penalties, _progress)
    result = outer.Result(problem.name, str(problem), newton, others)
    print(f"{outer.others_table(result)}\n", flush=True)
    return result


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if the data of a set were missing."""
    parser = command_line("svm", "SMO against LIBSVM, and solvers for kernel weights.", SETS)
    options = parser.parse_args(arguments)
    results: Results = {"compilation": {"seconds": single.first_solves()}}
    n_missing = 0
    for name in options.sets:
        part: dict[str, Any] = {}
        if name in MACHINES:
            part["duels"] = run_single(name, options.quick)
        if name in PROBLEMS:
            part["solvers"] = run_outer(name, options.quick)
        if None in part.values():
            n_missing += 1
        else:
            results[name] = part
    report("svm", results, page, options.write, ["compilation", *SETS])
    return int(n_missing > 0)


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

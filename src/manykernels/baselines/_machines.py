"""One support vector machine per kernel: outputs at held-out samples, and the final machines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._rounding import ROUNDING
from .._sklearn import Interval
from .._warnings import warn_caller
from ..discriminant import LabelledKernels
from ..estimators._base import estimator
from ..estimators._grid import Grid, checked_positive, refuse_unsolved
from ..estimators._held_out import SplitOutputs
from ..estimators._kernels import TrainingKernels
from ..estimators._learning import WeightLearning
from ..estimators._machine_path import PreparedKernels, held_out_outputs
from ..estimators._machines import INNER_SHARE, MachineKernels
from ..estimators._progress import FitTask
from ..estimators._rows import TrainingRows
from ..estimators._search import Search
from ..estimators._splits import LabelSplits
from ..estimators.svc_cv import DEFAULT_PENALTIES, ClassMachines, machine_groups
from ..kernels.transforms import Chain
from ..solvers import solved_in_all
from ._margins import MarginProgram, Mixture
from ._mixture import KernelMixture

# The norm of the only weight of a machine with one kernel: any gives the weight one.
_ANY_NORM = np.inf


@estimator
class MixedMachinesParameters:
    """Parameters and attributes of machines, one per kernel, with weights for large margins.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        ν: the margin ρ is such that at most this share of the samples is below it. The program
        maximises the mean margin of this share, the worst samples; with 1, of all.
    Cs : array-like of float, optional
        C of the machines to try, by default 0.01, 0.1, 1 and 10, which suit normalised kernels.
        Each kernel gets the one with which its machine is most often right on held-out samples; of
        equal ones, the smallest. A single value is taken for all.
    cv : None, int, splitter, iterable of splits or (X_val, y_val), default=None
        How samples are held out for outputs of machines that have not seen them. None takes five
        folds with the classes in equal parts, whatever the order of the rows; equal rows stay
        together, and a class of a single sample is in no test part. A pair is a validation set.
    tol : float, default=1e-4
        Relative duality gap of the machines and of the program for the weights.
    n_jobs : int, optional
        Number of splits that are computed in parallel.
    verbose : bool, default=False
        Print a line per machine. Progress bars: ``set_callbacks(ProgressBar())``.

    Attributes
    ----------
    rho_ : float
        ρ; where it may be anything between two margins, the mean of these.
    C_ : ndarray of shape (n_kernels,)
        C of the machine of each kernel.
    n_splits_ : int
    n_inner_solves_ : int
        Number of support vector machines.
    """

    nu: float = 0.5
    Cs: Any = None
    cv: Any = None
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "nu": [Interval(Real, 0, 1, closed="right")],
        "Cs": ["array-like", None],
        "cv": ["cv_object", tuple, None],
        "n_jobs": [None, int],
    }


def checked_penalties(estimator: Any) -> np.ndarray:
    """The C to try."""
    return checked_positive(estimator.Cs, DEFAULT_PENALTIES, "Cs")


@dataclass(frozen=True)
class HeldOutMachines:
    """Machines of every kernel, at every split and every C; `judged` are the held-out samples."""

    estimator: Any
    names: list[str]
    penalties: np.ndarray
    parts: list[SplitOutputs]
    judged: list[LabelledKernels]
    task: FitTask

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        rows: TrainingRows,
        kernels: TrainingKernels,
        penalties: np.ndarray,
    ) -> HeldOutMachines:
        """Learn them; begins the task of the fit, with one part more than there are splits."""
        counts = rows.counts
        samples = LabelledKernels(
            kernels.stack, rows.labels, rows.classes, counts, counts, rows.groups
        )
        splits = LabelSplits(estimator, rows, kernels.source, samples).of(y)
        task = FitTask.begin(estimator, X, y, len(splits) + 1)
        names = kernels.stack.names
        numbers = np.arange(len(names))
        grid = Grid({"kernel": numbers, "p": np.array([_ANY_NORM]), "C": penalties})
        search = Search(estimator, samples, splits, task)
        machines = partial(_machines, INNER_SHARE * estimator.tol)
        parts = held_out_outputs(search, grid, machines, _each_kernel)
        judged = [split.judged for split in splits]
        found = cls(estimator, names, penalties, parts, judged, task)
        found._refuse_unsolved()
        return found

    def _refuse_unsolved(self) -> None:
        """Raise if a kernel has no machine, and warn of those that some C lacks."""
        records = [part.record for part in self.parts]
        unsolved = ~solved_in_all(records).any(axis=(1, 2))
        if unsolved.any():
            reasons = [reason for record in records for reason in record.failures]
            reason = reasons[0] if reasons else "A callback asked to stop."
            name = self.names[int(unsolved.argmax())]
            raise ValueError(f"No machine of kernel {name!r} could be learnt. {reason}")
        refuse_unsolved(records, self.estimator.tol)

    def mixture(self, *, shared: bool) -> Mixture:
        """Weights of the machines, each with its best C; `shared` by all classes or not."""
        chosen = self.chosen
        kernels = np.arange(len(self.names))
        outputs = np.concatenate([part.outputs[kernels, 0, chosen] for part in self.parts], axis=1)
        if outputs.shape[2] == 1:
            outputs = np.concatenate([-outputs, outputs], axis=2)
        labels = np.concatenate([test.labels for test in self.judged])
        weights = np.concatenate([_weights_of(test) for test in self.judged])
        shared = shared or outputs.shape[2] == 2
        program = MarginProgram(outputs, labels, weights, float(self.estimator.nu), shared)
        mixture = program.solve(self.estimator.tol)
        certificate = mixture.certificate
        if not certificate.converged:
            name = type(self.estimator).__name__
            message = f"{name} is {certificate.status}. {certificate.message}"
            warn_caller(message, ConvergenceWarning)
        return mixture

    @cached_property
    def chosen(self) -> np.ndarray:
        """Position of the best C for each kernel, by accuracy; of equal ones, the smallest."""
        solved = solved_in_all([part.record for part in self.parts])[:, 0]
        order = np.argsort(self.penalties)
        accuracies = np.where(solved, self._accuracies(), -np.inf)[:, order]
        best: np.ndarray = order[np.argmax(accuracies > accuracies.max(1)[:, None] - ROUNDING, 1)]
        return best

    def _accuracies(self) -> np.ndarray:
        """Share of right answers, in the mean of the splits, (n_kernels, n_penalties)."""
        shares = []
        for part, test in zip(self.parts, self.judged, strict=True):
            outputs = part.outputs[:, 0]
            answers = outputs[..., 0] > 0 if outputs.shape[-1] == 1 else outputs.argmax(axis=-1)
            shares.append(np.average(answers == test.labels, axis=-1, weights=_weights_of(test)))
        accuracies: np.ndarray = np.mean(shares, axis=0)
        return accuracies

    def learnt_again(
        self, mixture: Mixture, rows: TrainingRows, kernels: TrainingKernels
    ) -> dict[str, Any]:
        """Machines of all samples, where they have weight; the fitted attributes."""
        prepared = MachineKernels.prepared(kernels, rows, self.estimator.normalize)
        machines = _machines(INNER_SHARE * self.estimator.tol, kernels.labelled(rows))
        learning = WeightLearning.at(self.estimator, _ANY_NORM)
        used = np.flatnonzero(np.atleast_2d(mixture.weights).any(axis=0))
        final = self.task.subtask("final fit", len(used))
        shape = (len(self.names), len(rows), machines.n_outputs)
        coefficients, biases = np.zeros(shape), np.zeros(shape[::2])
        for j in used.tolist():
            stack = prepared.stack.select([j])
            losses = machines(stack, {"C": float(self.penalties[self.chosen[j]])})
            learnt = learning.learn(losses, stack.names, final)
            (solution,) = learnt.solutions
            found: Any = solution.evaluation
            coefficients[j] = found.coefficients
            alone = np.arange(len(self.names)) == j
            biases[j] = prepared.uncentred(found.biases, alone, found.coefficients)
        final.end()
        intercept = np.sum(np.atleast_2d(mixture.weights).T * biases, axis=0)
        certificate = mixture.certificate
        n_before = int(sum(part.record.n_inner_solves.sum() for part in self.parts))
        return {
            **KernelMixture(mixture.weights, coefficients, intercept).attributes(rows, prepared),
            "rho_": mixture.rho,
            "C_": self.penalties[self.chosen],
            "certificate_": certificate,
            "n_splits_": len(self.parts),
            "n_iter_": 1,
            "n_inner_solves_": n_before + len(used),
            "history_": {
                "objective": [certificate.primal],
                "rel_gap": [certificate.rel_gap],
                "n_inner_solves": [n_before],
            },
        }


def _machines(inner_tol: float, samples: LabelledKernels) -> ClassMachines:
    """Machines with the hinge loss, for several classes one against the rest."""
    groups = machine_groups(samples.labels, len(samples.classes), "shared")
    return ClassMachines(groups, _weights_of(samples), "hinge", inner_tol)


def _weights_of(samples: LabelledKernels) -> np.ndarray:
    return np.ones(len(samples.labels)) if samples.counts is None else samples.counts


def _each_kernel(train: Any, test: Any, transform: Chain) -> Iterator[PreparedKernels]:
    """The preparation of a grid that begins with the number of a kernel: each one alone."""
    stack = transform.fit_transform(train.stack, sample_weight=train.counts)
    together = PreparedKernels.centred(stack, transform.transform(test.stack))
    for j in range(stack.n_kernels):
        yield PreparedKernels(
            together.stack.select([j]), together.block.select([j]), places=((j,),)
        )

"""The methods of Yan et al. (2012), Table 2, each tuned on a validation set."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid
from threadpoolctl import threadpool_limits

from manykernels import MKFDACV, MKSVC, MKSVCCV, KernelStack
from manykernels.baselines import LPB, OBSCURE, Average, BestKernel, CGBoost, LPBeta, Product
from manykernels.solvers.path import PAPER_NORMS

#: C to try, 4^-5 to 4^5, and λ, 4^-8 to 4^4. The paper has 4^-5 to 4^4 for both.
PENALTIES = [4.0**power for power in range(-5, 6)]
REGS = [4.0**power for power in range(-8, 5)]
#: For methods that are slow there are fewer.
FEW_PENALTIES = [0.25, 1.0, 4.0, 16.0, 64.0]
FEWEST_PENALTIES = [1.0, 8.0, 64.0]
TWO_PENALTIES = [1.0, 8.0]
#: OBSCURE does not take the norm 1, and is given some of the paper's others.
NORMS_ABOVE_ONE = [1 + 2**-6, 1 + 2**-2, 4.0]
#: ν to try, the share of samples below the margin of LP-β and LP-B.
SHARES = [0.2, 0.5, 0.8]

Validation = tuple[KernelStack, np.ndarray]


@dataclass(frozen=True)
class Method:
    """A method, and its accuracy and deviation in the paper, in per cent, if it is there.

    `make` takes a validation set, for estimators that tune themselves on it, and the parameters
    of a point of `grid`. With a grid, every point is fitted, and judged on the validation set.
    `told` are attributes that tell what was chosen, besides the grid.
    """

    make: Callable[..., Any]
    paper: tuple[float, float] | None = None
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    told: Sequence[str] = ()


def _svm(validation: Validation, ps: Sequence[float] = (1.0,)) -> MKSVCCV:
    return MKSVCCV(ps=ps, Cs=PENALTIES, cv=validation)


def _fda(validation: Validation, ps: Sequence[float] = (1.0,)) -> MKFDACV:
    return MKFDACV(ps=ps, regs=REGS, cv=validation)


def _of_one(kind: type, machine: Callable[[Validation], Any]) -> Callable[[Validation], Any]:
    """An estimator that makes one kernel of several, with its machine."""
    return lambda validation: kind("precomputed", estimator=machine(validation))


class ColumnSVM:
    """SVM of all columns of all kernels with the 2-norm of their weights.

    That is boosting of kernel columns with ``½ Σ_jl α_jl²`` in the place of ``Σ_jl |α_jl|``
    (`CGBoost`), solved for all columns at once: the columns are features, and their products the
    kernel ``Σ_j K_j K_j``.
    """

    def __init__(self, validation: Validation) -> None:
        self.validation = validation

    def _kernel(self, stack: KernelStack) -> KernelStack:
        products = sum(stack.kernel(j) @ self._train.kernel(j) for j in range(stack.n_kernels))
        return KernelStack.from_arrays([products / self._size], names=["columns"])

    def fit(self, stack: KernelStack, y: np.ndarray) -> ColumnSVM:
        self._train, self._size = stack, 1.0
        self._size = float(np.mean(np.diag(self._kernel(stack).kernel(0))))
        others, labels = self.validation
        machine = _svm((self._kernel(others), labels)).set_params(
            kernels="precomputed", normalize=None
        )
        self.estimator_ = machine.fit(self._kernel(stack), y)
        return self

    def predict(self, stack: KernelStack) -> np.ndarray:
        return self.estimator_.predict(self._kernel(stack))

    def score(self, stack: KernelStack, y: np.ndarray) -> float:
        return float(np.mean(self.predict(stack) == y))


def _learning(kind: type, **options: Any) -> Callable[..., Any]:
    """An estimator that does not look at the validation set."""
    return lambda validation, **params: kind("precomputed", **options, **params)


def _precomputed(machine: Callable[..., Any], *args: Any) -> Callable[[Validation], Any]:
    return lambda validation: machine(validation, *args).set_params(kernels="precomputed")


#: By the name of the row, which is the paper's where it has one; those of ours come last.
METHODS: dict[str, Method] = {
    "product": Method(_of_one(Product, _svm), (85.5, 1.2), told=["C_"]),
    "averaging": Method(_of_one(Average, _svm), (84.9, 1.9), told=["C_"]),
    "ℓp MK-FDA": Method(_precomputed(_fda, PAPER_NORMS), (87.2, 1.6), told=["p_", "reg_"]),
    "ℓp MK-SVM": Method(_precomputed(_svm, PAPER_NORMS), (86.0, 2.4), told=["p_", "C_"]),
    "MKL (SILP)": Method(
        _learning(MKSVC, p=1, solver="silp", tol=1e-3), (85.2, 1.5), {"C": FEW_PENALTIES}
    ),
    "LP-β": Method(_learning(LPBeta, Cs=FEWEST_PENALTIES), (85.5, 3.0), {"nu": SHARES}),
    "LP-B": Method(_learning(LPB, Cs=FEWEST_PENALTIES), (85.4, 2.4), {"nu": SHARES}),
    "CG-Boost": Method(_learning(CGBoost, tol=1e-2), (84.8, 2.2), {"C": FEWEST_PENALTIES}),
    "ℓp MK-SVM OBSCURE": Method(
        _learning(OBSCURE, n_epochs_batch=50, exact=False, random_state=0),
        (85.6, 0.0),
        {"p": NORMS_ABOVE_ONE, "C": TWO_PENALTIES},
    ),
    "MKL (Simple)": Method(
        _learning(MKSVC, p=1, solver="reduced-gradient", tol=1e-3),
        (85.2, 1.5),
        {"C": TWO_PENALTIES},
    ),
    "CG-Boost, 2-norm": Method(ColumnSVM, told=["C_"]),
    "best kernel, SVM": Method(_of_one(BestKernel, _svm), told=["best_kernel_", "C_"]),
    "best kernel, FDA": Method(_of_one(BestKernel, _fda), told=["best_kernel_", "reg_"]),
    "averaging, FDA": Method(_of_one(Average, _fda), told=["reg_"]),
    "product, FDA": Method(_of_one(Product, _fda), told=["reg_"]),
}


@dataclass(frozen=True)
class Split:
    """Kernels between the photographs of each part and those of the training part."""

    train: KernelStack
    y_train: np.ndarray
    validation: KernelStack
    y_validation: np.ndarray
    test: KernelStack
    y_test: np.ndarray


@dataclass(frozen=True)
class Tuned:
    """One method on one split.

    `right` tells which photographs of the test part it knew, `chosen` what was tuned,
    `kernel_scores` how well each kernel does alone, if the method looks at that. Seconds are
    those of the processor for all of the tuning.
    """

    right: np.ndarray
    validation_accuracy: float
    chosen: dict[str, Any]
    weights: np.ndarray | None
    kernel_scores: np.ndarray | None
    seconds: float

    @property
    def accuracy(self) -> float:
        return float(self.right.mean())


def tuned(method: Method, split: Split) -> Tuned:
    """Tune on the validation part, and judge on the test part."""
    validation = split.validation, split.y_validation
    begin = time.process_time()
    best_score, best_model, best_params = -np.inf, None, {}
    with warnings.catch_warnings(), threadpool_limits(1):
        # Methods that stop early, as their authors do, would say so for every point.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for params in ParameterGrid(dict(method.grid)):
            model = method.make(validation, **params).fit(split.train, split.y_train)
            score = model.score(*validation)
            if score > best_score:  # of equal points the first
                best_score, best_model, best_params = score, model, params
        seconds = time.process_time() - begin
    assert best_model is not None
    chosen = {name: getattr(_holder(best_model, name), name) for name in method.told}
    return Tuned(
        right=best_model.predict(split.test) == split.y_test,
        validation_accuracy=float(best_score),
        chosen={name.rstrip("_"): value for name, value in {**best_params, **chosen}.items()},
        weights=getattr(best_model, "weights_", None),
        kernel_scores=getattr(best_model, "scores_", None),
        seconds=seconds,
    )


def _holder(model: Any, name: str) -> Any:
    """The model or its machine, whichever has the attribute."""
    return model if hasattr(model, name) else model.estimator_

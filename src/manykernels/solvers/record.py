"""How the models of a grid of parameters were solved, and what is told while they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..domains import Array

#: Where a point is in a grid, one number per parameter.
Position = tuple[int, ...]


class SolvedPoint(Protocol):
    """What a grid needs of the certificate of a model."""

    @property
    def rel_gap(self) -> float: ...

    @property
    def converged(self) -> bool: ...


@dataclass(frozen=True)
class GridProgress:
    """The latest solved point of a grid; `iteration` counts the points."""

    iteration: int
    params: Mapping[str, float]
    n_inner_solves: int
    rel_gap: float

    def __str__(self) -> str:
        values = "  ".join(f"{name} {value:.6g}" for name, value in self.params.items())
        return f"{values}  inner solves {self.n_inner_solves}  relative gap {self.rel_gap:.1e}"


@dataclass(frozen=True)
class GridRecord:
    """The models of one training part, one at every point of a grid.

    Attributes
    ----------
    rel_gaps, n_inner_solves, converged : ndarray of the shape of the grid
        Infinite, zero and False at points that could not be solved, or not yet.
    failures : list of str
        Why points could not be solved.
    """

    rel_gaps: Array
    n_inner_solves: NDArray[np.int_]
    converged: NDArray[np.bool_]
    failures: list[str]

    @classmethod
    def unsolved(cls, shape: Position) -> GridRecord:
        """The record of a grid of which nothing is solved yet."""
        return cls(np.full(shape, np.inf), np.zeros(shape, int), np.zeros(shape, bool), [])

    def note(
        self,
        at: Position,
        params: Mapping[str, float],
        certificate: SolvedPoint,
        n_inner_solves: int,
    ) -> GridProgress:
        """Enter a solved point, and say so."""
        self.rel_gaps[at] = certificate.rel_gap
        self.converged[at] = certificate.converged
        self.n_inner_solves[at] = n_inner_solves
        return GridProgress(self.n_solved, params, n_inner_solves, certificate.rel_gap)

    @property
    def solved(self) -> NDArray[np.bool_]:
        """Which points have been solved."""
        return self.n_inner_solves > 0

    @property
    def n_solved(self) -> int:
        return int(np.count_nonzero(self.solved))


def solved_in_all(records: Sequence[GridRecord]) -> NDArray[np.bool_]:
    """Points that have been solved in every training part."""
    solved: NDArray[np.bool_] = np.all([record.solved for record in records], axis=0)
    return solved

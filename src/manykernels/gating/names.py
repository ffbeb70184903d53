"""Gates by name."""

from __future__ import annotations

from .gates import Gate, Gaussian, Sigmoid, Softmax
from .indicators import PerCluster, PerSample

GATES: dict[str, type[Gate]] = {
    gate.name: gate for gate in (Softmax, Sigmoid, Gaussian, PerCluster, PerSample)
}


def as_gate(gate: str | Gate) -> Gate:
    """The gate of this name with default parameters; a :class:`Gate` is returned as it is.

    Examples
    --------
    >>> from manykernels.gating import as_gate
    >>> as_gate("sigmoid")
    Sigmoid(scale=0.01)
    """
    if isinstance(gate, Gate):
        return gate
    accepted = f"a gate is one of {', '.join(map(repr, GATES))}, or a Gate instance"
    if not isinstance(gate, str):
        raise TypeError(f"{gate!r} is not a gate: {accepted}.")
    if gate not in GATES:
        raise ValueError(f"There is no gate named {gate!r}: {accepted}.")
    return GATES[gate]()

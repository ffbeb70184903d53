"""Kernel of molecules, which are written as SMILES."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..utils.sklearn import Interval
from ..utils.storable import storable
from .base import Kernel
from .tables import naming
from .words import Sequences

# Larger counts of a fragment are not told apart.
_MOST = 255


@storable
@dataclass(eq=False, repr=False)
class Molecules(Kernel):
    """Tanimoto similarity of Morgan fingerprints of molecules, from SMILES.

    A Morgan fingerprint counts the circular fragments of a molecule, up to a radius in bonds. The
    similarity is ``Σ_k min(x_k, y_k) / Σ_k max(x_k, y_k)``; without counts, the number of common
    fragments divided by the number of fragments of either molecule. Needs RDKit:
    ``pip install "manykernels[chem]"``.

    Parameters
    ----------
    radius : int, default=2
        Largest radius of a fragment. Radius 2 gives the fingerprints called ECFP4.
    n_bits : int, default=2048
        Number of entries of a fingerprint, to which fragments are hashed.
    counts : bool, default=True
        Whether to compare the numbers of each fragment, or only which fragments occur.
    columns : str, int, list, slice, boolean mask or callable, default=None
        One column of SMILES; not needed for a table with a single column or a list of strings.

    References
    ----------
    D. Rogers, M. Hahn. Extended-connectivity fingerprints. Journal of Chemical Information and
    Modeling 50, 2010.
    L. Ralaivola, S. J. Swamidass, H. Saigo, P. Baldi. Graph kernels for chemical informatics.
    Neural Networks 18, 2005.

    Examples
    --------
    Ethanol, propanol and benzene:

    >>> from manykernels.kernels import Molecules
    >>> Molecules()(["CCO", "CCCO", "c1ccccc1"]).round(2)
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "radius": [Interval(Integral, 0, None, closed="left")],
        "n_bits": [Interval(Integral, 1, None, closed="left")],
        "counts": ["boolean"],
    }

    _: KW_ONLY
    radius: int = 2
    n_bits: int = 2048
    counts: bool = True

    def _validated(self, X: object) -> Sequences:
        return Sequences.of(X)

    def _learn_scale(self, X: Sequences, weights: np.ndarray) -> None:
        with naming(self._title):
            self._fingerprints(X)  # raises for texts that are no SMILES

    def _evaluate(self, X: Sequences, Y: Sequences | None) -> np.ndarray:
        with naming(self._title):
            left = self._fingerprints(X)
            right = left if Y is None else self._fingerprints(Y)
        common = (left @ right.T).toarray()
        sizes = [np.asarray(part.sum(axis=1)).ravel() for part in (left, right)]
        either = np.add.outer(*sizes) - common
        return np.divide(common, either, out=np.ones_like(common), where=either > 0)

    def _diagonal(self, X: Sequences) -> np.ndarray:
        return np.ones(len(X))

    def _fingerprints(self, X: Sequences) -> sparse.csr_array:
        """Return rows of zeros and ones, whose inner products are sums of smaller counts."""
        key = ("fingerprints", self.radius, self.n_bits, self.counts)
        return X.once(key, lambda: self._computed(X))

    def _computed(self, X: Sequences) -> sparse.csr_array:
        try:
            from rdkit import Chem, rdBase
            from rdkit.Chem import rdFingerprintGenerator
        except ImportError as error:
            raise ImportError(
                'Molecules needs RDKit: pip install "manykernels[chem]". Without it, compare '
                "fingerprints of your own, zeros and ones, with the kernel Tanimoto.",
                name="rdkit",
            ) from error
        generator = rdFingerprintGenerator.GetMorganGenerator(
            radius=self.radius, fpSize=self.n_bits
        )
        columns, ends = [], [0]
        with rdBase.BlockLogs():
            for row, text in enumerate(X.texts()):
                molecule = Chem.MolFromSmiles(text) if text.strip() else None
                if molecule is None:
                    raise ValueError(
                        f"row {row} has {X.text(row)}, which is no SMILES of a molecule that "
                        "RDKit can read: correct it, or leave the row out."
                    )
                found = generator.GetCountFingerprint(molecule).GetNonzeroElements()
                for bit, count in found.items():
                    # The c-th occurrence of a fragment is a column of its own.
                    most = min(count, _MOST) if self.counts else 1
                    columns.append(bit + self.n_bits * np.arange(most))
                ends.append(ends[-1] + sum(map(len, columns[len(columns) - len(found) :])))
        indices = np.concatenate(columns) if columns else np.empty(0, int)
        shape = (len(X), _MOST * self.n_bits)
        return sparse.csr_array((np.ones(len(indices)), indices, ends), shape=shape)

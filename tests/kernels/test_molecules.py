"""Tanimoto kernel of SMILES: by hand, by RDKit, and texts that are no molecules."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator

import manykernels as mk
from manykernels.kernels import Molecules

SMILES = ["CCO", "CCCO", "c1ccccc1", "c1ccccc1O", "CC(=O)Oc1ccccc1C(=O)O", "CCCCCCCCCCCC", "C"]


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize(("radius", "n_bits"), [(2, 2048), (1, 128), (0, 64)])
def test_similarities_are_those_of_rdkit(radius, n_bits, counts):
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=n_bits)
    fingerprint = generator.GetCountFingerprint if counts else generator.GetFingerprint
    prints = [fingerprint(Chem.MolFromSmiles(text)) for text in SMILES]
    expected = [[DataStructs.TanimotoSimilarity(one, other) for other in prints] for one in prints]
    kernel = Molecules(radius=radius, n_bits=n_bits, counts=counts)
    assert_allclose(kernel(SMILES), expected)
    assert_allclose(kernel.fit(SMILES)(SMILES[:3], SMILES[2:]), np.array(expected)[:3, 2:])
    assert_allclose(kernel.diag(SMILES), 1.0)


@pytest.mark.parametrize(("text", "shown"), [("C1CC", "'C1CC'"), ("hello", "'hello'"), ("", "''")])
def test_texts_that_are_no_molecules(text, shown, capfd):
    with pytest.raises(ValueError, match=f"Molecules: row 1 has {shown}, which is no SMILES"):
        Molecules().fit(["CCO", text])
    assert capfd.readouterr().err == ""


def test_without_rdkit(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(ImportError, match=r"Molecules needs RDKit: pip install .manykernels.chem"):
        Molecules()(SMILES)


def test_a_model_of_molecules_is_saved(tmp_path):
    table = pd.DataFrame({"smiles": SMILES * 4, "weight": np.arange(28.0)})
    y = ["ring" if "1" in text else "chain" for text in table["smiles"]]
    views = {"structure": table[["smiles"]], "measured": table[["weight"]]}
    model = mk.MKFDA({"structure": Molecules(), "measured": None}).fit(views, y)
    mk.save(model, tmp_path / "molecules.skops")
    again = mk.load(tmp_path / "molecules.skops")
    new = {"structure": [["c1ccccc1N"], ["CCCCN"]], "measured": [[3.0], [4.0]]}
    frames = {name: pd.DataFrame(rows, columns=list(views[name])) for name, rows in new.items()}
    assert list(again.predict(frames)) == ["ring", "chain"]

"""Files that earlier versions have written are read for ever, and answer as they did."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import manykernels as mk
from tests.persistence.make_golden import FOLDER, MODELS, golden

# Rounding errors differ between machines.
CLOSE = 1e-9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("name", MODELS)
def test_golden_files_answer_as_they_did(name):
    path, answers = golden(name)
    model = mk.load(path)
    known = MODELS[name]
    assert type(model) is type(known[0])
    assert model.certificate_.converged
    assert_allclose(model.decision_function(known[1](5, 9)), np.load(answers), rtol=CLOSE)
    assert repr(model) == repr(known[0])


def test_every_golden_file_has_a_test():
    expected = {path.name for name in MODELS for path in golden(name)}
    assert {path.name for path in FOLDER.iterdir()} == expected
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 100_000

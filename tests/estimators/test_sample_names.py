"""A square test block given the wrong way round is found where samples have names."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import cross_val_score

from manykernels import MKFDA, MKSVC, MKSVR, KernelStack, MKOneClassSVM
from manykernels.kernels import rbf_grid

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
y = (X[:, 0] > 0).astype(int)
NAMES = [f"sample{i}" for i in range(40)]
TRAIN, TEST = np.arange(20), np.arange(20, 40)
PLAIN = rbf_grid([1.0, 3.0]).fit(X)(X)
STACK = PLAIN.with_samples(NAMES)
ESTIMATORS = [
    MKFDA(kernels="precomputed"),
    MKSVC(kernels="precomputed"),
    MKSVR(kernels="precomputed"),
    MKOneClassSVM(kernels="precomputed"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_blocks_of_a_stack(estimator):
    estimator.fit(STACK[np.ix_(TRAIN, TRAIN)], y[TRAIN])
    block = STACK[np.ix_(TEST, TRAIN)]
    expected = estimator.predict(PLAIN[np.ix_(TEST, TRAIN)])
    assert_array_equal(estimator.predict(block), expected)
    assert_array_equal(pickle.loads(pickle.dumps(estimator)).predict(block), expected)
    with pytest.raises(ValueError, match=r"columns of X are not the training samples.*transposed"):
        estimator.predict(STACK[np.ix_(TRAIN, TEST)])
    with pytest.raises(ValueError, match="another order"):
        estimator.predict(STACK[np.ix_(TEST, TRAIN[::-1])])


def test_blocks_of_a_data_frame():
    K = pd.DataFrame(PLAIN.kernel(0), index=range(100, 140), columns=range(100, 140))
    train, test = K.index[TRAIN], K.index[TEST]
    machine = MKSVC(kernels="precomputed").fit(K.loc[train, train], y[TRAIN])
    expected = machine.predict(K.loc[test, train].to_numpy())
    assert_array_equal(machine.predict(K.loc[test, train]), expected)
    with pytest.raises(ValueError, match=r"'120' against '100' at position 0.*transposed"):
        machine.predict(K.loc[train, test])
    with pytest.raises(ValueError, match="Gram matrix are the same samples in the same order"):
        machine.fit(K.loc[train, test], y[TRAIN])


def test_rows_without_weight_keep_their_names():
    weights = np.where(TRAIN % 4 == 0, 0.0, 1.0)
    machine = MKSVC(kernels="precomputed")
    machine.fit(STACK[np.ix_(TRAIN, TRAIN)], y[TRAIN], sample_weight=weights)
    machine.predict(STACK[np.ix_(TEST, TRAIN)])
    with pytest.raises(ValueError, match="transposed"):
        machine.predict(STACK[np.ix_(TRAIN, TEST)])


def test_searches_cut_names_along_with_samples():
    scores = cross_val_score(MKFDA(kernels="precomputed"), STACK, y, error_score="raise")
    assert_array_equal(scores, cross_val_score(MKFDA(kernels="precomputed"), PLAIN, y))


def test_without_names_a_square_block_is_taken_as_it_is():
    machine = MKSVC(kernels="precomputed").fit(PLAIN[np.ix_(TRAIN, TRAIN)], y[TRAIN])
    transposed = KernelStack.from_arrays(PLAIN.data[:, :20, 20:], gram=False)
    with pytest.raises(ValueError, match="kernels of X"):
        machine.predict(transposed)
    assert machine.predict(PLAIN[np.ix_(TRAIN, TEST)]).shape == (20,)

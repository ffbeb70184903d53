"""Work in threads: the number of BLAS threads is what it was afterwards.

Run by `test_threads.py` in a process of its own. In one where other tests have set the number of
threads, OpenBLAS no longer listens to other threads than theirs.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import dask.array as da
import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from manykernels import MKFDA, MKRidge
from manykernels.kernels import Linear
from manykernels.scale.blocks import row_blocks
from manykernels.utils import numerics
from manykernels.utils.numerics import in_threads, one_blas_thread


def _blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture
def blas_threads():
    """The numbers of threads of all copies of BLAS, as a function; three of each to begin with."""

    copies = ThreadpoolController().select(user_api="blas").lib_controllers
    before = [copy.num_threads for copy in copies]

    def set_threads(numbers):
        # By a thread that ends: others may change the numbers afterwards.
        with ThreadPoolExecutor(1) as pool:
            for copy, number in zip(copies, numbers, strict=True):
                pool.submit(copy.set_num_threads, number).result()

    set_threads([3] * len(copies))
    assert set(_blas_threads()) == {3}
    yield _blas_threads
    set_threads(before)


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(numerics, "openmp_n_threads", lambda **_: 2)


@pytest.mark.parametrize("error", [None, ZeroDivisionError])
@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_works_that_overlap_put_back_the_number(blas_threads, first_leaves_first, error):
    """Both threads go on living, and either may leave first, maybe by an exception."""
    entered = [threading.Event(), threading.Event()]
    left = [threading.Event(), threading.Event()]
    seen = []
    first, last = (0, 1) if first_leaves_first else (1, 0)

    def fit(number):
        def work(part):
            entered[number].set()
            entered[1].wait(10)
            if number == last:
                left[first].wait(10)
            seen.append(set(blas_threads()))
            if error is not None and part == 1:
                raise error

        if number == 1:
            entered[0].wait(10)
        try:
            in_threads(work, [0, 1])
        except ZeroDivisionError:
            pass
        finally:
            left[number].set()
        left[last].wait(10)

    with ThreadPoolExecutor(2) as pool:
        for result in [pool.submit(fit, number) for number in (0, 1)]:
            result.result()
    assert seen == [{1}] * 4
    assert set(blas_threads()) == {3}


def test_many_works_at_once(blas_threads):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: in_threads(lambda part: None, [0, 1]), range(200)))
    assert set(blas_threads()) == {3}


def test_one_inside_of_another(blas_threads):
    with one_blas_thread():
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {3}


def test_the_limit_of_a_caller_is_put_back(blas_threads):
    with threadpool_limits(limits=2, user_api="blas"):
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}
    assert set(blas_threads()) == {3}


def test_a_limit_of_others_that_ends_in_between_stays_ended(blas_threads):
    limited, inside, ended = threading.Event(), threading.Event(), threading.Event()

    def other():
        with threadpool_limits(limits=1, user_api="blas"):
            limited.set()
            inside.wait(10)
        ended.set()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(other)
        limited.wait(10)
        with one_blas_thread():
            inside.set()
            ended.wait(10)
        assert set(blas_threads()) == {3}


def test_one_blas_thread_while_tasks_run(blas_threads):
    seen = row_blocks(da.ones((8, 1), chunks=2)).reduce(
        lambda state, block: (state or set()) | set(blas_threads()), set.union
    )
    assert seen == {1}
    assert set(blas_threads()) == {3}


@pytest.mark.parametrize(("n_rows", "expected"), [(1000, 1), (1001, 3)])
def test_fits_of_few_rows_use_one_blas_thread(blas_threads, n_rows, expected):
    seen = set()

    def observe(X):
        seen.update(blas_threads())
        return X

    X = np.random.default_rng(0).normal(size=(n_rows, 2))
    kernel = Linear().after(FunctionTransformer(observe))
    MKRidge(kernel, p=np.inf).fit(X, X[:, 0])
    assert seen == {expected}
    assert set(blas_threads()) == {3}


def test_a_fit_that_fails_puts_back_the_number(blas_threads):
    with pytest.raises(ValueError, match="at least 2 classes"):
        MKFDA().fit(np.ones((3, 2)), [1, 1, 1])
    assert set(blas_threads()) == {3}

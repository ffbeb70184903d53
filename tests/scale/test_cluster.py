"""Passes on a cluster: the same sums, also if a worker dies; an error if the cluster goes."""

from __future__ import annotations

import os
import signal
import threading
import time

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from manykernels.scale.blocks import map_blocks, row_blocks
from manykernels.scale.sampling import Reservoir

pytestmark = pytest.mark.slow

N_CHUNKS = 40


def started():
    # Critical messages only, and a port that nobody else has.
    return LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)


@pytest.fixture(scope="module")
def client():
    with started() as cluster, Client(cluster) as client:
        yield client


def table():
    return np.random.default_rng(0).normal(size=(N_CHUNKS * 10, 3))


def products(state, block):
    new = block.X.T @ block.X
    return new if state is None else state + new


def slow_products(state, block):
    time.sleep(0.05)
    return products(state, block)


def add(first, second):
    return first + second


def chunked():
    return da.from_array(table(), chunks=(10, 3))


def sums_in_threads():
    return row_blocks(chunked()).reduce(products, add)


class Heavy:
    """Features of twelve million bytes."""

    def __init__(self):
        self.features = np.ones((3, 500_000))

    def __call__(self, state, block):
        return len(self.features) * len(block) + (state or 0)


def test_sums_are_those_of_threads(client):
    found = row_blocks(chunked()).reduce(products, add)
    expected = sum(block.T @ block for block in np.split(table(), N_CHUNKS))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_samples_and_predictions(client):
    y = np.arange(len(table())) % 3
    sample, census = Reservoir(20, 0, per_class=10).draw(row_blocks(chunked(), y))
    expected, _ = Reservoir(20, 0, per_class=10).draw(row_blocks(table(), y))
    np.testing.assert_array_equal(sample.rows, expected.rows)
    np.testing.assert_array_equal(sample.X, expected.X)
    assert census.counts.sum() == len(table())
    found = map_blocks(chunked(), lambda X: X[:, 0])
    np.testing.assert_array_equal(found.compute(), table()[:, 0])


def test_large_feature_maps_are_sent_without_a_warning(client):
    assert row_blocks(chunked()).reduce(Heavy(), add) == 3 * len(table())


def test_an_error_on_a_worker_names_the_row(client):
    X = table()
    X[215, 1] = np.nan
    with pytest.raises(ValueError, match=r"Block 21, .* at row 215, column 1"):
        row_blocks(da.from_array(X, chunks=(10, 3))).reduce(products, add)


def test_a_worker_that_dies_costs_nothing(client):
    pids = list(client.run(os.getpid).values())
    running = threading.Event()

    def kill():
        # When some of the chunks are done.
        while True:
            states = client.run_on_scheduler(
                lambda dask_scheduler: [
                    task.state
                    for task in dask_scheduler.tasks.values()
                    if str(task.key).startswith("accumulate_rows")
                ]
            )
            if sum(state in ("memory", "released", "forgotten") for state in states) >= 5:
                os.kill(pids[0], signal.SIGKILL)
                running.set()
                return
            time.sleep(0.02)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    found = row_blocks(chunked()).reduce(slow_products, add)
    killer.join(timeout=60)
    assert running.is_set()
    np.testing.assert_array_equal(found, sums_in_order())
    assert pids[0] not in client.run(os.getpid).values()


def sums_in_order():
    """The same sums in the same order: chunk by chunk, eight in each merge."""
    states = [part.T @ part for part in np.split(table(), N_CHUNKS)]
    while len(states) > 1:
        groups = [states[k : k + 8] for k in range(0, len(states), 8)]
        states = [_merged(group) for group in groups]
    return states[0]


def _merged(group):
    merged = group[0]
    for state in group[1:]:
        merged = merged + state
    return merged


def test_a_cluster_that_goes():
    with started() as cluster, Client(cluster) as client:
        closing = threading.Timer(1.0, client.close)
        closing.start()
        with pytest.raises(RuntimeError, match=r"The dask cluster is gone.*call fit again"):
            row_blocks(chunked()).reduce(slow_products, add)
        closing.join()

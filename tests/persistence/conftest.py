"""A saved model as bytes, a way to load bytes, and a look at whether anything was executed."""

import pytest

import manykernels as mk
from tests.persistence.archives import EXECUTED, MODEL


@pytest.fixture(autouse=True)
def nothing_executed():
    EXECUTED.clear()
    yield
    assert EXECUTED == []


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "model.skops"
    mk.save(MODEL, path)
    return path.read_bytes()


@pytest.fixture
def load(tmp_path):
    """Load bytes as a file."""

    def loaded(content, **options):
        path = tmp_path / "model.skops"
        path.write_bytes(content)
        return mk.load(path, **options)

    return loaded

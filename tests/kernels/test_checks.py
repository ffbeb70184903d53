"""What check_stack refuses, mends and leaves alone; memory asked for before it is taken."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manykernels.kernels import RBF, KernelStack, KernelUnion, checks
from manykernels.kernels.stack import check_stack
from manykernels.utils import numerics

TINY, SMALL, LARGE = 1, 8, 40  # below and above the size where only the top eigenvalue is found
SIZES = [TINY, SMALL, LARGE]


def unchecked(*matrices, gram=True):
    return KernelStack(np.stack(matrices).astype(float), list("abcde"[: len(matrices)]), gram=gram)


def with_spectrum(values, seed=0):
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    matrix = (turn * values) @ turn.T
    return (matrix + matrix.T) / 2


def spectrum(size, smallest, largest=1.0):
    return np.r_[smallest, largest * np.linspace(0.1, 1.0, size - 1)]


# -- finite ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "shown"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")])
@pytest.mark.parametrize("gram", [True, False])
def test_values_that_are_not_finite_are_located(value, shown, gram):
    broken = np.eye(SMALL)
    broken[5, 2] = value
    message = rf"Kernel 'b' has a value that is not finite \({shown}\) at row 5, column 2\."
    with pytest.raises(ValueError, match=message):
        check_stack(unchecked(np.eye(SMALL), broken, gram=gram))
    with pytest.raises(ValueError, match=message.replace("'b'", "'kernel1'")):
        KernelStack.from_arrays([np.eye(SMALL), broken], gram=gram, psd="ignore")


def test_values_far_down_are_located(monkeypatch):
    monkeypatch.setattr(checks, "TILE_ROWS", 3)
    broken = np.eye(SMALL)
    broken[7, 1] = np.nan
    with pytest.raises(ValueError, match="row 7, column 1"):
        check_stack(unchecked(broken))


@pytest.mark.parametrize("which", ["row_diag", "col_diag"])
def test_diagonals_that_are_not_finite_are_located(which):
    diagonals = np.ones((2, SMALL))
    diagonals[1, 4] = np.nan
    with pytest.raises(ValueError, match=rf"{which} of kernel 'kernel1'.*\(nan\) at sample 4"):
        KernelStack.from_arrays(np.ones((2, SMALL, SMALL)), gram=False, **{which: diagonals})


# -- symmetric -------------------------------------------------------------------------------


@pytest.mark.parametrize("block_rows", [3, 256])
def test_asymmetry_is_located(monkeypatch, block_rows):
    monkeypatch.setattr(checks, "TILE_ROWS", block_rows)
    broken = 10 * np.eye(SMALL)
    broken[6, 1] = 0.5
    message = (
        r"Kernel 'b' is not symmetric: entries \((1, 6|6, 1)\) and \((1, 6|6, 1)\) differ by 0.5"
    )
    with pytest.raises(ValueError, match=message):
        check_stack(unchecked(np.eye(SMALL), broken))
    with pytest.raises(
        ValueError, match="gram=False for a block between different samples, otherwise"
    ):
        KernelStack.from_arrays(broken, psd="ignore")


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_asymmetry_is_relative_to_the_largest_entry(size):
    slightly = np.eye(SMALL)
    slightly[0, 1] = 0.9 * checks.SAME_ENTRY
    assert check_stack(unchecked(size * slightly)).checked
    slightly[0, 1] = 1.1 * checks.SAME_ENTRY
    with pytest.raises(ValueError, match="not symmetric"):
        check_stack(unchecked(size * slightly))


# -- positive semi-definite ------------------------------------------------------------------


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_an_indefinite_kernel_is_refused_with_its_eigenvalues(size):
    indefinite = with_spectrum(spectrum(size, -0.25, largest=2.0))
    message = "Kernel 'b' is not positive semi-definite: its eigenvalues go from -0.25 to 2"
    with pytest.raises(ValueError, match=re.escape(message)):
        check_stack(unchecked(np.eye(size), indefinite))


@pytest.mark.parametrize("size", SIZES)
def test_a_negative_kernel_is_refused(size):
    with pytest.raises(ValueError, match="not positive semi-definite"):
        check_stack(unchecked(-np.eye(size)))


def test_mostly_negative_kernels_are_refused():
    with pytest.raises(ValueError, match="from -100 to 1"):
        check_stack(unchecked(with_spectrum(spectrum(LARGE, -100.0))))


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("largest", [1e-3, 1.0, 1e6])
def test_the_tolerance_for_negative_eigenvalues(size, largest):
    limit = checks.NEGATIVE_RATIO * largest
    tolerated = with_spectrum(spectrum(size, -0.95 * limit, largest))
    assert_array_equal(check_stack(unchecked(tolerated)).data[0], tolerated)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        check_stack(unchecked(with_spectrum(spectrum(size, -1.05 * limit, largest))))


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_the_absolute_tolerance_of_tiny_kernels(size):
    values = np.zeros(size)
    values[0] = -0.9 * checks.NEGATIVE_VALUE
    assert check_stack(unchecked(np.diag(values))).checked
    values[0] = -1.1 * checks.NEGATIVE_VALUE
    with pytest.raises(ValueError, match="not positive semi-definite"):
        check_stack(unchecked(np.diag(values)))


@pytest.mark.parametrize("size", [0, *SIZES])
def test_degenerate_kernels_are_fine(size):
    kernels = [np.zeros((size, size)), np.ones((size, size)), np.eye(size)]
    assert check_stack(unchecked(*kernels)).checked


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_ignored_negative_eigenvalues_stay(size):
    indefinite = with_spectrum(spectrum(size, -0.5))
    stack = check_stack(unchecked(indefinite), psd="ignore")
    assert stack.checked
    assert_array_equal(stack.data[0], indefinite)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6), st.integers(0, 9))
def test_clipping_gives_the_nearest_psd_matrix(values, seed):
    values = np.array([*values, -0.5])
    matrix = with_spectrum(values, seed)
    clipped = check_stack(unchecked(matrix), psd="clip").data[0]
    assert np.linalg.eigvalsh(clipped)[0] > -1e-12
    assert_array_equal(clipped, clipped.T)
    # The nearest in Frobenius norm keeps the eigenvectors and drops what is negative.
    assert_allclose(clipped, with_spectrum(np.maximum(values, 0), seed), atol=1e-12)


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("smallest", [-1e-6, -1e-9, -1e-12])
def test_clipping_leaves_no_negative_eigenvalue_but_rounding(size, smallest):
    """Errors that advise it may be about less than what is tolerated."""
    matrix = with_spectrum(spectrum(size, smallest))
    assert np.linalg.eigvalsh(matrix)[0] < 0.9 * smallest
    for scale in (1e-9, 1.0):
        clipped = KernelStack.from_arrays(scale * matrix, psd="clip").data[0]
        assert np.linalg.eigvalsh(clipped)[0] > -1e-14 * scale


def test_clipping_leaves_rounding_alone():
    factor = np.random.default_rng(0).standard_normal((LARGE, 3))
    singular = factor @ factor.T
    assert_array_equal(KernelStack.from_arrays(singular, psd="clip").data[0], singular)
    single = singular.astype(np.float32)
    assert_array_equal(KernelStack.from_arrays(single, psd="clip").data[0], single)


def test_clipping_touches_only_the_kernel_that_needs_it():
    good, bad = with_spectrum(spectrum(SMALL, 0.2)), with_spectrum(spectrum(SMALL, -0.5))
    given = np.stack([good, bad])
    stack = KernelStack.from_arrays(given, psd="clip")
    assert_array_equal(stack.data[0], good)
    assert_array_equal(given[1], bad)
    assert_array_equal(stack.row_diag, np.einsum("jii->ji", stack.data))
    assert_array_equal(stack.col_diag, stack.row_diag)
    assert not stack.data.flags.writeable


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("constant", [-3.0, 50.0])
def test_a_constant_may_be_added_to_what_will_be_centred(size, constant):
    shifted = with_spectrum(spectrum(size, 0.1)) + constant
    stack = check_stack(unchecked(shifted), centered=True)
    assert_array_equal(stack.data[0], shifted)
    indefinite = with_spectrum(spectrum(size, -0.5)) + constant
    with pytest.raises(ValueError, match="not positive semi-definite"):
        check_stack(unchecked(indefinite), centered=True)


def test_a_negative_constant_is_refused_without_centring():
    with pytest.raises(ValueError, match="not positive semi-definite"):
        check_stack(unchecked(np.eye(SMALL) - 3.0))


def test_clipping_after_centring_is_the_clipped_centred_kernel():
    matrix = with_spectrum(spectrum(SMALL, -0.5))
    P = np.eye(SMALL) - 1 / SMALL
    values, vectors = np.linalg.eigh(P @ matrix @ P)
    stack = check_stack(unchecked(matrix + 5.0), "clip", centered=True)
    removed = (vectors * np.minimum(values, 0)) @ vectors.T
    assert_allclose(stack.data[0], matrix + 5.0 - removed, atol=1e-12)
    assert_allclose(stack.data[0].mean(axis=0), (matrix + 5.0).mean(axis=0), atol=1e-12)


def test_rounding_explains_small_negative_eigenvalues():
    exact = with_spectrum(np.r_[np.zeros(SMALL - 3), 50.0, 50.0, 50.0])
    rounded = np.round(exact)
    assert np.linalg.eigvalsh(rounded)[0] < -0.1
    mended = check_stack(unchecked(rounded), rounding=1.0).data[0]
    assert np.linalg.eigvalsh(mended)[0] > -1e-12
    assert np.abs(mended - rounded).max() < 1.0
    with pytest.raises(ValueError, match="not positive semi-definite"):
        check_stack(unchecked(rounded))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        check_stack(unchecked(rounded - 2 * SMALL * np.eye(SMALL)), rounding=1.0)


@pytest.mark.parametrize("psd", ["repair", None, True])
def test_unknown_policies(psd):
    policies = r"psd must be one of \['clip', 'exact', 'ignore', 'raise'\]"
    with pytest.raises(ValueError, match=policies):
        KernelStack.from_arrays(np.eye(2), psd=psd)


# -- once is enough --------------------------------------------------------------------------


def test_a_block_is_checked_for_finite_values_only():
    block = np.arange(SMALL**2).reshape(SMALL, SMALL) - 100.0
    stack = KernelStack.from_arrays(block, gram=False)
    assert stack.checked
    assert_array_equal(stack.data[0], block)


def test_sub_stacks_are_not_checked_again(monkeypatch):
    stack = KernelStack.from_arrays(with_spectrum(spectrum(SMALL, 0.1)))

    def refuse(*args):
        raise AssertionError("checked twice")

    for check in ("check_finite", "check_symmetric", "exact_extremes_if_negative"):
        monkeypatch.setattr(checks, check, refuse)
    rows = np.array([3, 1, 5])
    for part in (stack, stack[np.ix_(rows, rows)], stack[rows], stack.select([0])):
        assert part.checked
        assert check_stack(part) is part
    with pytest.raises(AssertionError, match="checked twice"):
        check_stack(unchecked(np.eye(SMALL)))


def test_checking_leaves_the_given_stack_alone():
    stack = unchecked(np.eye(SMALL))
    assert check_stack(stack).checked
    assert not stack.checked


# -- shapes, names and types -----------------------------------------------------------------


@pytest.mark.parametrize("arrays", [[], (), np.empty((0, 3, 3)), np.empty((0, 3, 3), dtype=int)])
def test_no_kernel(arrays):
    with pytest.raises(ValueError, match="needs at least one kernel"):
        KernelStack.from_arrays(arrays)


def test_matrices_of_different_shapes():
    message = r"kernel 'second' has shape \(4, 4\), the first kernel \(3, 3\)"
    with pytest.raises(ValueError, match=message):
        KernelStack.from_arrays([np.eye(3), np.eye(4)], names=["first", "second"])


@pytest.mark.parametrize("matrix", [np.ones(3), 1.0, np.ones((2, 2, 2))])
def test_what_is_not_a_matrix(matrix):
    message = re.escape(f"Kernel 'kernel1' must be a matrix, got shape {np.shape(matrix)}")
    with pytest.raises(ValueError, match=message):
        KernelStack.from_arrays([np.eye(3), matrix])


@pytest.mark.parametrize("entry", ["word", None, {}])
def test_objects_are_not_numbers(entry):
    matrix = np.full((2, 2), entry, dtype=object)
    with pytest.raises(ValueError, match=r"Kernel 'words' (does not hold numbers|has a value)"):
        KernelStack.from_arrays([np.eye(2), matrix], names=["numbers", "words"])


def test_objects_that_are_numbers_are_taken():
    assert_array_equal(KernelStack.from_arrays(np.eye(2, dtype=object)).data[0], np.eye(2))


def test_an_array_with_kernels_last_is_recognised():
    with pytest.raises(ValueError, match=r"\(4, 4, 3\) looks like .*np.moveaxis.*gram=False"):
        KernelStack.from_arrays(np.ones((4, 4, 3)))


@pytest.mark.parametrize("data", [np.ones((2, 2)), np.ones((1, 2, 2), dtype=np.int64)])
def test_the_constructor_converts_nothing(data):
    with pytest.raises(ValueError, match=r"Convert it with KernelStack\.from_arrays"):
        KernelStack(data, ["a"])


def test_a_gram_stack_is_square():
    with pytest.raises(ValueError, match="as many rows as columns, got 2 x 3"):
        KernelStack.from_arrays(np.ones((1, 2, 3)), gram=True)


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["a", "b", "b", "a"], ValueError, "must differ; repeated: a, b"),
        (["a", "b"], ValueError, "names has 2 entries, but there are 4 kernels"),
        (list("abcde"), ValueError, "names has 5 entries, but there are 4 kernels"),
        (["a", "b", 3, "d"], TypeError, "must be strings, got 3"),
    ],
)
@pytest.mark.parametrize("convert", [np.stack, list])
def test_names(names, error, message, convert):
    with pytest.raises(error, match=message):
        KernelStack.from_arrays(convert([np.eye(2)] * 4), names=names)


@pytest.mark.parametrize(("which", "size"), [("row_diag", 2), ("col_diag", 3)])
def test_shape_of_the_diagonals(which, size):
    message = rf"{which} must have shape \(1, {size}\), got \(1, 5\)"
    with pytest.raises(ValueError, match=message):
        KernelStack.from_arrays(np.ones((1, 2, 3)), **{which: np.ones((1, 5))})


# -- memory ----------------------------------------------------------------------------------

MILLION = 10**6  # a square of this many float64 takes 7450.6 GiB
TOO_LARGE = r"needs 7450\.6 GiB, but 1\.0 GiB are available\..*memmap="


@pytest.fixture
def one_gib(monkeypatch):
    monkeypatch.setattr(numerics, "available_memory", lambda: 2**30)


@pytest.fixture
def no_memory(monkeypatch):
    monkeypatch.setattr(numerics, "available_memory", lambda: 0)


@pytest.mark.usefixtures("one_gib")
def test_matrices_that_do_not_fit():
    # One number seen a million times a million times takes no memory, its copy would.
    huge = np.broadcast_to(1.0, (MILLION, MILLION))
    for arrays in ([huge], huge, huge[None]):
        with pytest.raises(MemoryError, match=TOO_LARGE):
            KernelStack.from_arrays(arrays)


@pytest.mark.usefixtures("one_gib")
def test_a_slice_that_does_not_fit():
    stack = KernelStack(np.broadcast_to(1.0, (1, MILLION, MILLION)), ["a"])
    with pytest.raises(MemoryError, match=TOO_LARGE):
        stack[:]


@pytest.mark.usefixtures("one_gib")
def test_kernels_that_do_not_fit():
    union = KernelUnion([("rbf", RBF(1.0))]).fit(np.ones((2, 1)))
    with pytest.raises(MemoryError, match=TOO_LARGE):
        union(np.broadcast_to(1.0, (MILLION, 1)))


@pytest.mark.usefixtures("no_memory")
def test_the_way_out_is_a_file(tmp_path):
    X = np.random.default_rng(0).normal(size=(SMALL, 2))
    union = KernelUnion([("rbf", RBF(1.0))]).fit(X)
    with pytest.raises(MemoryError, match="memmap"):
        union(X)
    stack = union(X, memmap=tmp_path / "stack.npy")
    assert_array_equal(np.load(tmp_path / "stack.npy")[0], RBF(1.0)(X))
    with pytest.raises(MemoryError, match="memmap"):
        stack.materialized()
    assert_array_equal(stack.materialized(tmp_path / "copy.npy").data, stack.data)


@pytest.mark.usefixtures("no_memory")
def test_an_array_that_is_there_already_needs_no_memory():
    assert KernelStack.from_arrays(np.eye(2)[None]).shape == (2, 2, 1)


def test_where_the_system_does_not_say_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(numerics, "available_memory", lambda: None)
    assert KernelStack.from_arrays([np.eye(2)]).shape == (2, 2, 1)


MEMINFO = {"/proc/meminfo": "MemTotal: 64 kB\nMemAvailable:   32 kB\n"}
GROUP = "/sys/fs/cgroup/memory."


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (MEMINFO, 32 * 1024),
        (MEMINFO | {f"{GROUP}max": "max\n"}, 32 * 1024),
        (MEMINFO | {f"{GROUP}max": "5000\n", f"{GROUP}current": "4000\n"}, 1000),
        (MEMINFO | {f"{GROUP}max": "4000\n", f"{GROUP}current": "5000\n"}, 0),
        (MEMINFO | {f"{GROUP}max": "99999999\n", f"{GROUP}current": "0\n"}, 32 * 1024),
        ({}, 6 * 7),
    ],
)
def test_available_memory(monkeypatch, files, expected):
    class Files:
        def __init__(self, path):
            self.path = path

        def read_text(self):
            if self.path not in files:
                raise FileNotFoundError(self.path)
            return files[self.path]

    monkeypatch.setattr(numerics, "Path", Files)
    system = {"SC_PHYS_PAGES": 6, "SC_PAGE_SIZE": 7}
    monkeypatch.setattr(numerics.os, "sysconf", system.__getitem__, raising=False)
    assert numerics.available_memory() == expected


def test_available_memory_is_unknown_without_files_and_sysconf(monkeypatch):
    class NoFile:
        def __init__(self, path):
            raise FileNotFoundError(path)

    monkeypatch.setattr(numerics, "Path", NoFile)
    monkeypatch.delattr(numerics.os, "sysconf", raising=False)
    assert numerics.available_memory() is None


# -- samples that lack a kernel --------------------------------------------------------------


def lacking(rows=(1,), n=4):
    """A kernel that some samples lack, beside one that all have."""
    K = np.eye(n)
    K[list(rows)] = K[:, list(rows)] = np.nan
    return np.array([np.eye(n), K])


def test_samples_may_lack_kernels_if_asked():
    stack = KernelStack.from_arrays(lacking(), names=["sound", "text"], missing=True)
    assert np.isnan(stack.row_diag[1, 1])
    assert stack.checked
    block = KernelStack.from_arrays(lacking()[:, :3], gram=False, missing=True)
    assert block.checked


def test_samples_that_lack_kernels_are_refused_unless_asked_even_if_checked():
    way_out = r"'text' has no values .* 2 of 4 samples, rows 0, 3\. .*missing=\"mean\""
    with pytest.raises(ValueError, match=way_out):
        KernelStack.from_arrays(lacking((0, 3)), names=["sound", "text"])
    checked = KernelStack.from_arrays(lacking((0, 3)), names=["sound", "text"], missing=True)
    with pytest.raises(ValueError, match=way_out):
        check_stack(checked)


@pytest.mark.parametrize("gram", [True, False])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_missing_elsewhere_is_named(gram, value):
    K = lacking()
    K[1, 2, 3] = K[1, 3, 2] = value
    with pytest.raises(ValueError, match=r"'kernel1' has a value .* at row 2, column 3"):
        KernelStack.from_arrays(K, gram=gram, missing=True)


def test_a_sample_without_self_similarity_has_no_similarities():
    K = lacking()
    K[1, 1, 2] = K[1, 2, 1] = 0.5
    with pytest.raises(ValueError, match=r"row 1, column 1, but one at row 1, column 2"):
        KernelStack.from_arrays(K, missing=True)


def test_kernels_are_symmetric_and_definite_where_they_are_known():
    K = lacking()
    K[1, 0, 2] = 1e-9
    stack = KernelStack.from_arrays(K, missing=True)
    assert stack.data[1, 0, 2] == stack.data[1, 2, 0] == 5e-10
    K[1, 0, 0] = -1.0
    with pytest.raises(ValueError, match="'kernel1' is not positive semi-definite"):
        KernelStack.from_arrays(K, missing=True)
    clipped = KernelStack.from_arrays(K, missing=True, psd="clip")
    assert clipped.data[1, 0, 0] >= 0.0
    assert np.isnan(clipped.data[1, 1]).all()
    K[1, 0, 2] = 0.5
    with pytest.raises(ValueError, match=r"'kernel1' is not symmetric: entries \(0, 2\)"):
        KernelStack.from_arrays(K, missing=True)


def test_self_similarities_of_samples_that_have_the_kernel_are_needed():
    block = lacking()[:, :3]
    diagonal = np.array([[1.0, 1.0, 1.0], [1.0, np.nan, 1.0]])
    KernelStack.from_arrays(block, gram=False, row_diag=diagonal, missing=True)
    diagonal[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"row_diag of kernel 'kernel1' .* at sample 2"):
        KernelStack.from_arrays(block, gram=False, row_diag=diagonal, missing=True)


def test_views_have_one_name_per_kernel():
    with pytest.raises(ValueError, match="one name for each of the 2 kernels, got"):
        KernelStack.from_arrays(lacking(), missing=True).with_views(["a"])

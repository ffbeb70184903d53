"""
A model in a file that is safe to open
======================================

A pickle runs whatever its author put into it. A file of :func:`manykernels.save` holds arrays and
the names of classes, and :func:`manykernels.load` restores nothing but classes that it knows.
"""

# %%
# Fitted on six views of handwritten digits, with three kernels each.

import tempfile
from pathlib import Path

import numpy as np

import manykernels as mk
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF

views, y = load_digit_views(noise=0)
train, test = views[:300], views[300:600]
kernels = [(f"rbf{width:g}", RBF("median", width)) for width in (0.5, 1.0, 2.0)]
model = mk.MKFDA(kernels, p=1.2).fit(train, y[:300])

folder = Path(tempfile.mkdtemp())
path = folder / "digits.skops"
mk.save(model, path)

rows = sum(table.nbytes for _, table in train.items())
print(f"{len(model.kernel_names_)} kernels of 300 samples")
print(
    f"training rows: {rows / 1024:.0f} KiB in memory, file: {path.stat().st_size / 1024:.0f} KiB"
)

# %%
# What comes back is the same model: answers, parameters, certificate.

twin = mk.load(path)
same = np.array_equal(twin.decision_function(test), model.decision_function(test))
print(f"answers are the same, bit for bit: {same}")
print(f"certificate: relative gap {twin.certificate_.rel_gap:.1e}")
assert same
assert twin.certificate_ == model.certificate_

# %%
# A function cannot be stored, since the file would have to name code to run. It is refused when
# the model is saved, by the name of its kernel.


def overlap(X, Z):
    return np.minimum(X[:, None], Z).sum(axis=2)


with_function = mk.MKFDA({"rbf": RBF(), "overlap": overlap})
with_function.fit(np.abs(np.random.default_rng(0).normal(size=(30, 4))), np.arange(30) % 2)
try:
    mk.save(with_function, folder / "function.skops")
except mk.ModelFileError as error:
    print(f"\nrefused: {error}")

# %%
# A damaged file is refused as well, whatever is wrong with it.

damaged = bytearray(path.read_bytes())
damaged[len(damaged) // 2] ^= 1
path.write_bytes(damaged)
try:
    mk.load(path)
except mk.ModelFileError as error:
    print(f"\nrefused: {error}")

"""
Saving and loading models safely
================================

Loading a pickle can execute arbitrary code. A file written by :func:`manykernels.save` contains
arrays and class names, and :func:`manykernels.load` restores only known classes.
"""

# %%
# The model is fitted to six views of handwritten digits, with three kernels each.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import manykernels as mk
from manykernels.datasets import load_digit_views
from manykernels.display import WeightsDisplay
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
# The loaded model has the same predictions, parameters and certificate.

twin = mk.load(path)
same = np.array_equal(twin.decision_function(test), model.decision_function(test))
print(f"answers are the same, bit for bit: {same}")
print(f"certificate: relative gap {twin.certificate_.rel_gap:.1e}")
assert same
assert twin.certificate_ == model.certificate_

# %%
# Functions cannot be stored, because the file would have to contain code. Saving such a model
# raises an error that names the kernel.


def overlap(X, Z):
    return np.minimum(X[:, None], Z).sum(axis=2)


with_function = mk.MKFDA({"rbf": RBF(), "overlap": overlap})
with_function.fit(np.abs(np.random.default_rng(0).normal(size=(30, 4))), np.arange(30) % 2)
try:
    mk.save(with_function, folder / "function.skops")
except mk.ModelFileError as error:
    print(f"\nrefused: {error}")

# %%
# Loading a damaged file raises an error as well.

damaged = bytearray(path.read_bytes())
damaged[len(damaged) // 2] ^= 1
path.write_bytes(damaged)
try:
    mk.load(path)
except mk.ModelFileError as error:
    print(f"\nrefused: {error}")

# %%
# Figure
# ------
# The weights of the loaded model.

WeightsDisplay.from_estimator(twin)
plt.show()

"""
Kernels of columns, sums and products
=====================================

A table rarely has one kind of column. Each kernel chooses its own with ``.on``, kernels add
and multiply, and their parameters are tuned like any other.
"""

# %%
# A data frame of digits: how much ink lies in every row of the image, how long the edges are
# in each direction (histograms, which can be compared by χ²), and low Fourier coefficients.

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, train_test_split

from manykernels import MKFDA, KernelUnion
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF, ChiSquare, Cosine

views, y = load_digit_views()
names = {
    "ink": [f"ink{i}" for i in range(16)],
    "edge": [f"edge{i}" for i in range(32)],
    "wave": [f"wave{i}" for i in range(13)],
}
table = pd.DataFrame(
    np.hstack([views["rows"], views["gradients"], views["fourier"]]),
    columns=[name for group in names.values() for name in group],
)
X_train, X_test, y_train, y_test = train_test_split(
    table, y, train_size=300, stratify=y, random_state=0
)

# %%
# A product compares two things at once: rows are similar if their ink *and* their edges are.
# A sum with fixed parts is one kernel, with one weight.

ink = RBF(gamma="median").on(names["ink"])
edge = ChiSquare(gamma="median").on(names["edge"])
wave = RBF(gamma="median").on(names["wave"]) + 0.5 * Cosine().on(names["wave"])
union = KernelUnion([("ink", ink), ("edge", edge), ("wave", wave), ("ink and edge", ink * edge)])
model = MKFDA(union, reg=0.1).fit(X_train, y_train)
for name, weight in zip(model.kernel_names_, model.weights_, strict=True):
    print(f"{name:<14}{weight:6.3f}")
print(f"held-out accuracy {model.score(X_test, y_test):.3f}\n")

# %%
# ``kernels__<name>__<parameter>`` reaches into the union.

search = GridSearchCV(
    MKFDA(union, reg=0.1),
    {"kernels__ink__width": [0.5, 1.0, 2.0], "kernels__edge__gamma": ["median", 0.01]},
    cv=3,
)
search.fit(X_train, y_train)
for name, value in search.best_params_.items():
    print(f"{name}: {value}")
print(f"held-out accuracy {search.score(X_test, y_test):.3f}")

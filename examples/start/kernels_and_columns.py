"""
Kernels of columns, sums and products
=====================================

Tables often have columns of several types. ``.on`` selects the columns of a kernel, kernels can be
added and multiplied, and their parameters can be tuned with ``GridSearchCV``.
"""

# %%
# The data frame describes handwritten digits by the amount of ink in each row of the image, by the
# edges in each direction (histograms, which are compared by χ²), and by low Fourier coefficients.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, train_test_split

from manykernels import MKFDA, KernelUnion
from manykernels.datasets import load_digit_views
from manykernels.display import WeightsDisplay
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
# Under a product of kernels, rows are similar if both their ink *and* their edges are similar. A
# sum with fixed coefficients is one kernel, with one weight.

ink = RBF(gamma="median").on(names["ink"])
edge = ChiSquare(gamma="median").on(names["edge"])
wave = RBF(gamma="median").on(names["wave"]) + 0.5 * Cosine().on(names["wave"])
union = KernelUnion([("ink", ink), ("edge", edge), ("wave", wave), ("ink and edge", ink * edge)])
model = MKFDA(union, reg=0.1).fit(X_train, y_train)
for name, weight in zip(model.kernel_names_, model.weights_, strict=True):
    print(f"{name:<14}{weight:6.3f}")
print(f"held-out accuracy {model.score(X_test, y_test):.3f}\n")

# %%
# ``kernels__<name>__<parameter>`` is a parameter of one of the kernels.

search = GridSearchCV(
    MKFDA(union, reg=0.1),
    {"kernels__ink__width": [0.5, 1.0, 2.0], "kernels__edge__gamma": ["median", 0.01]},
    cv=3,
)
search.fit(X_train, y_train)
for name, value in search.best_params_.items():
    print(f"{name}: {value}")
print(f"held-out accuracy {search.score(X_test, y_test):.3f}")

# %%
# Figure
# ------

WeightsDisplay.from_estimator(search.best_estimator_)
plt.show()

"""
Several targets: shared or separate weights?
============================================

The targets are three properties of images of handwritten digits: the height of the ink, its width,
and its slant. They are predicted from five views of the image, of which none contains the pixels
and one is noise. :class:`~manykernels.MKRidge` learns weights that are shared by all targets, or
separate weights for each target.
"""

# %%
# The targets have different units: pixels from the top, pixels, and degrees. Noise is added to
# them. There is one linear kernel per view.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from manykernels import MKRidge, MKRidgeCV, Views
from manykernels.datasets import load_digit_views
from manykernels.kernels import Linear

TARGETS = ["height", "width", "slant"]
VIEWS = ["rows", "columns", "gradients", "fourier", "noise1"]


def measured(images):
    """Return the mean row of the ink, the standard deviation of its columns, and its slant."""
    row, column = np.mgrid[:8, :8]
    ink = images / images.sum(axis=(1, 2), keepdims=True)
    mean_row, mean_column = ((ink * place).sum(axis=(1, 2)) for place in (row, column))
    down, right = (row - mean_row[:, None, None], column - mean_column[:, None, None])
    spread = np.sqrt((ink * right**2).sum(axis=(1, 2)))
    lean = (ink * down * right).sum(axis=(1, 2)) / (ink * down**2).sum(axis=(1, 2))
    return np.column_stack([mean_row, spread, np.degrees(np.arctan(-lean))])


views, _ = load_digit_views(noise=1)
y = measured(views["pixels"].reshape(-1, 8, 8))
y += 0.3 * y.std(axis=0) * np.random.default_rng(0).normal(size=y.shape)
X = Views({name: views[name] for name in VIEWS})
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)

# %%
# λ is chosen by cross-validation, for all targets together or for each target. R² on new images is
# compared with R² of ``left_out_predictions_``, the predictions for each training image by a model
# without it, in closed form.

models, left_out, new = {}, {}, {}
for way in ("shared", "separate"):
    model = MKRidgeCV(Linear(), ps=[1], multi_target=way, cv="closed-form").fit(X_train, y_train)
    models[way] = model
    left_out[way] = r2_score(y_train, model.left_out_predictions_, multioutput="raw_values")
    new[way] = r2_score(y_test, model.predict(X_test), multioutput="raw_values")

print(f"{'':<10}{'shared':>24}{'separate':>24}")
print(f"{'R²':<10}" + 2 * f"{'left out':>14}{'new':>10}")
for k, target in enumerate(TARGETS):
    cells = [f"{left_out[way][k]:>14.3f}{new[way][k]:>10.3f}" for way in models]
    print(f"{target:<10}" + "".join(cells))

# %%
# Each target is divided by its standard deviation, so targets with shared weights have the same
# influence. The weights do not depend on the units, here radians instead of degrees.

other = MKRidge(Linear(), p=1, reg=models["shared"].reg_)
degrees = other.fit(X_train, y_train).weights_
radians = other.fit(X_train, y_train * [1, 1, np.pi / 180]).weights_
print(f"largest change of a weight: {np.abs(radians - degrees).max():.0e}")

# %%
# Each target uses the views that are informative about it: the height uses rows only, the width
# mostly Fourier coefficients, the slant gradients. Shared weights are a compromise that reduces R²
# by a hundredth. The noise view gets a few per cent of the weights, because it can fit the noise
# of the targets.

INK = "#1b1b1b"
rows = np.vstack([models["separate"].weights_, models["shared"].weights_])
labels = [*TARGETS, "all three"]
fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), width_ratios=[1.4, 1], layout="constrained")
axes[0].imshow(100 * rows, cmap="Blues", vmin=0, vmax=100, aspect="auto")
for (row, column), value in np.ndenumerate(100 * rows):
    text = f"{value:.0f}" if value >= 0.5 else "·"
    axes[0].text(column, row, text, ha="center", va="center", color="white" if value > 55 else INK)
axes[0].axhline(len(TARGETS) - 0.5, color="white", lw=4)
axes[0].set_xticks(range(len(VIEWS)), VIEWS)
axes[0].set_yticks(range(len(labels)), labels)
axes[0].tick_params(length=0)
axes[0].spines[:].set_visible(False)
axes[0].set_title("Weights at p = 1, per cent", loc="left", weight="bold", fontsize=10)

place = np.arange(len(TARGETS))
for way, shift, color in (("shared", -0.12, "#2a6f97"), ("separate", 0.12, "#c55a11")):
    axes[1].plot(place + shift, new[way], "o", color=color, label=f"{way}, new images")
    axes[1].plot(
        place + shift, left_out[way], "_", ms=14, mew=2, color=color, label=f"{way}, left out"
    )
axes[1].set_xticks(place, TARGETS)
axes[1].set_ylim(0, 1)
axes[1].set_title("R²", loc="left", weight="bold", fontsize=10)
axes[1].spines[["top", "right"]].set_visible(False)
axes[1].legend(frameon=False, loc="lower left")
plt.show()

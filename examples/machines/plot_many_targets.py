"""
A thousand targets: which views predict each?
=============================================

Encoding models of the brain predict thousands of responses from several feature spaces.
:class:`~manykernels.MKRidgeCV` with ``multi_target="separate"`` learns kernel weights for each of
them: all targets share some hundred candidate weights, and each takes the best one in folds.
"""

# %%
# The responses of a made-up sheet of 24 × 40 voxels mix two of three feature spaces: motion on the
# left, words on the right, sounds below. Responses are noisier towards the top.

import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKRidgeCV
from manykernels.kernels import Linear

HEIGHT, WIDTH, N_TRAIN = 24, 40, 200
rng = np.random.default_rng(0)
spaces = {name: rng.normal(size=(400, 15)) for name in ("motion", "words", "sounds")}
row, column = (axis.ravel() for axis in np.mgrid[0:1:24j, 0:1:40j])
shares = np.array([(1 - column) * (1 - row), column * (1 - row), row])
responses = rng.normal(size=(400, HEIGHT * WIDTH)) * (1.5 - row)
for table, share in zip(spaces.values(), shares, strict=True):
    responses += table @ rng.normal(size=(15, HEIGHT * WIDTH)) / np.sqrt(15) * np.sqrt(share)

train = {name: table[:N_TRAIN] for name, table in spaces.items()}
new = {name: table[N_TRAIN:] for name, table in spaces.items()}
model = MKRidgeCV(Linear(), multi_target="separate").fit(train, responses[:N_TRAIN])
print(f"weights {model.weights_.shape}, {model.n_inner_solves_} eigendecompositions")

# %%
# ``score_by_view`` divides R² on new samples between the feature spaces; the shares of a voxel sum
# to its R². R² in folds, known after the fit, agrees with that of the new samples.

parts = model.score_by_view(new, responses[N_TRAIN:])
total = sum(parts.values())
print(f"mean R²: {model.best_score_.mean():.3f} in folds, {total.mean():.3f} on new samples")

fig, axes = plt.subplots(1, 4, figsize=(10, 2.6), layout="constrained")
for axis, (name, part) in zip(axes, parts.items(), strict=False):
    image = axis.imshow(part.reshape(HEIGHT, WIDTH), cmap="Blues", vmin=0, vmax=0.6)
    axis.set_title(name, loc="left", weight="bold", fontsize=10)
    axis.set_axis_off()
fig.colorbar(image, ax=axes[:3], label="share of R² on new samples")
axes[3].plot(model.best_score_, total, ".", ms=2, color="#2a6f97")
axes[3].axline((0, 0), slope=1, color="#888888", lw=1)
axes[3].set_xlabel("R² in folds")
axes[3].set_ylabel("R² on new samples")
axes[3].spines[["top", "right"]].set_visible(False)
plt.show()

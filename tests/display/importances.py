"""An importance that nothing was computed for."""

import numpy as np

from manykernels.inspection import ViewImportance

IMPORTANCE = ViewImportance(
    names=["a", "b"],
    scoring="accuracy",
    method="5 folds held out",
    confidence=0.9,
    score=0.9,
    score_interval=np.array([0.85, 0.94]),
    fall=np.array([0.25, -0.01]),
    fall_interval=np.array([[0.2, 0.3], [-0.03, 0.02]]),
    alone=np.array([0.8, np.nan]),
    alone_interval=np.array([[0.7, 0.85], [np.nan, np.nan]]),
    weight=np.array([0.75, 0.25]),
    resampled_weights=np.array([[0.7, 0.3], [0.8, 0.2], [1.0, 0.0]]),
    negligible=1e-3,
    plain_sum=0.88,
    plain_sum_interval=np.array([0.8, 0.92]),
    gain=0.02,
    gain_interval=np.array([-0.01, 0.05]),
)

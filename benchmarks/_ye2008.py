"""Figures of Ye, Ji and Chen (2008), tables 2, 4 and 17, as printed."""

from __future__ import annotations

from dataclasses import dataclass

# There "4.46" for the sixth: a misprint, the widths are equally spaced in logarithms.
WIDTHS = [0.10, 0.22, 0.46, 1.00, 2.15, 4.64, 10.00, 21.54, 46.42, 100.00]


@dataclass(frozen=True)
class Printed:
    """One row: weights of the ten kernels, λ, accuracy and its deviation in per cent."""

    weights: tuple[float, ...]
    reg: float
    accuracy: float
    deviation: float


_SONAR_EXACT = (0, 0, 0, 0, 0.550, 0.307, 0.022, 0.041, 0.029, 0.050)
_IONOSPHERE_EXACT = (0.362, 0.073, 0.033, 0.108, 0, 0.147, 0.277, 0, 0, 0)

ROWS = {
    "sonar": {
        "SDP θ": Printed(_SONAR_EXACT, 5e-4, 89.27, 5.34),
        "SDP θ,λ": Printed(_SONAR_EXACT, 3.1e-8, 89.35, 5.34),
        "QCQP θ": Printed(
            (0.003, 0.003, 0.004, 0.011, 0.444, 0.375, 0.046, 0.034, 0.035, 0.048),
            5e-4,
            89.76,
            5.34,
        ),
        "QCQP θ,λ": Printed(_SONAR_EXACT, 5e-2, 89.35, 5.34),
        "SILP θ": Printed(
            (0, 0, 0, 0, 0.459, 0.406, 0.011, 0.034, 0.032, 0.059), 5e-4, 89.76, 5.37
        ),
        "SILP θ,λ": Printed(
            (0, 0, 0, 0, 0.547, 0.313, 0.023, 0.031, 0.034, 0.052), 4.2e-10, 89.43, 5.18
        ),
        "SDP Kim": Printed(
            (0.167, 0.048, 0.175, 0.072, 0.251, 0.173, 0.031, 0.025, 0.015, 0.044),
            1e-8,
            88.46,
            5.28,
        ),
    },
    "ionosphere": {
        "SDP θ": Printed(_IONOSPHERE_EXACT, 5e-4, 94.67, 2.25),
        "SDP θ,λ": Printed(_IONOSPHERE_EXACT, 1.4e-7, 94.67, 2.25),
        "QCQP θ": Printed(
            (0.222, 0.116, 0.081, 0.074, 0.042, 0.182, 0.236, 0.022, 0.014, 0.012),
            5e-4,
            94.86,
            2.39,
        ),
        "QCQP θ,λ": Printed(_IONOSPHERE_EXACT, 2.2e-4, 94.67, 2.25),
        "SILP θ": Printed(
            (0.261, 0.080, 0.061, 0.116, 0, 0.167, 0.316, 0, 0, 0), 5e-4, 94.90, 2.33
        ),
        "SILP θ,λ": Printed(
            (0.364, 0.073, 0.028, 0.112, 0, 0.145, 0.279, 0, 0, 0), 3.6e-9, 94.81, 2.23
        ),
        "SDP Kim": Printed((0.942, 0, 0, 0, 0, 0.006, 0.038, 0.013, 0.001, 0), 1e-8, 89.43, 3.98),
    },
}

#: Accuracies with one kernel and λ or C by cross-validation.
SINGLE_KERNELS = {
    "sonar": {
        "RKDA λ": (53.65, 54.95, 60.24, 73.57, 84.95, 90.56, 89.91, 86.99, 85.52, 84.95),
        "SVM C": (53.65, 54.63, 59.91, 73.41, 86.09, 89.67, 90.65, 89.59, 86.58, 84.22),
    },
    "ionosphere": {
        "RKDA λ": (65.71, 76.47, 90.33, 92.14, 93.33, 94.28, 93.14, 91.71, 90.61, 89.00),
        "SVM C": (65.38, 66.57, 89.38, 93.00, 94.57, 95.04, 93.80, 93.42, 92.61, 91.95),
    },
}

#: SVMs with learnt weights, whose sum is ten, and kernels chosen by cross-validation, of which
#: the "weights" count how often. In the place of λ stands C.
MACHINES = {
    "sonar": {
        "SM1": Printed((0, 0, 0, 0.040, 3.953, 5.514, 0.491, 0, 0, 0), 1, 89.75, 4.90),
        "SM2": Printed((0, 0, 0, 0, 2.875, 6.765, 0.359, 0, 0, 0), 1, 89.59, 5.24),
        "SM2 C": Printed(
            (0, 0.011, 0.014, 0.084, 4.253, 6.038, 0.570, 0.004, 0.001, 0), 5.5e7, 89.84, 4.80
        ),
        "RKDA K,λ": Printed((0, 0, 0, 0, 0, 3, 14, 11, 2, 0), 0, 89.67, 6.62),
        "SVM K,C": Printed((0, 0, 0, 0, 0, 2, 16, 7, 5, 0), 0, 89.35, 5.18),
    },
    "ionosphere": {
        "SM1": Printed((3.553, 0.672, 0.482, 0.240, 0, 4.828, 0.221, 0, 0, 0), 1, 95.28, 2.09),
        "SM2": Printed((2.883, 0.682, 0.683, 0.196, 0, 5.305, 0.248, 0, 0, 0), 1, 94.81, 2.07),
        "SM2 C": Printed(
            (3.910, 0.714, 0.561, 0.255, 0, 5.300, 0.256, 0, 0, 0), 1.4e7, 95.19, 2.17
        ),
        "RKDA K,λ": Printed((0, 0, 0, 4, 5, 10, 8, 3, 0, 0), 0, 92.33, 5.51),
        "SVM K,C": Printed((0, 0, 0, 0, 8, 9, 7, 4, 2, 0), 0, 94.48, 2.39),
    },
}

#: Table 17: support vectors, in per cent of the training rows.
SUPPORT = {
    "sonar": {"SM1": 93.05, "SM2": 91.12, "SM2 C": 93.89},
    "ionosphere": {"SM1": 72.46, "SM2": 65.80, "SM2 C": 73.42},
}

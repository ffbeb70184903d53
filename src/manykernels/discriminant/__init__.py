"""From class labels to regression targets, and from regression outputs back to classes.

=================  =============================================================================
`labelled`         kernels with class labels, and Fisher's problem on them: the one preparation
                   that estimators, grids, leave-one-out and reports share
`rules`            class scores of regression outputs: indicator rule and linear discriminant
`calibration`      probabilities of class scores
`decision`         which rule a fit uses, judged by samples that were left out
`held_out`         class scores of held-out samples at every point of a (p, λ) grid
=================  =============================================================================
"""

"""From class labels to regression targets, and from regression outputs back to classes.

============  ===============================================================================
`problem`     kernels with class labels, Fisher's problem on them, and rules for class scores
`decision`    the choice of the rule, calibrated probabilities, scores of held-out samples
============  ===============================================================================
"""

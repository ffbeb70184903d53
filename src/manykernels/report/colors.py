"""Colours of the pictures: told apart in print and by colour-blind readers."""

INK, BLUE, ORANGE, PALE = "#1b1b1b", "#2a6f97", "#c55a11", "#b8b8b8"

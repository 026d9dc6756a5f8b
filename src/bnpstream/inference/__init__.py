"""Algorithms over posteriors: one module each, with the same names in each."""

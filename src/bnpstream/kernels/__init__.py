"""Compiled twins of the hot loops: NumPy and numba only, arrays and NamedTuples only.

Every loop here has a readable, vectorised twin elsewhere in the package (named in its
docstring) with the same names in the same order; the tests hold the two equal row by row.
"""

"""Rows of cells: columns of numbers, counts, booleans and labels."""

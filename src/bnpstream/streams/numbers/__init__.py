"""Files of numbers: a row is counts, or cells, of columns that have a number."""

"""Files of records with fields: texts, counts of words, or cells of named columns."""

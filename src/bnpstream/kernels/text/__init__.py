"""Numbers and words in bytes of text, found by compiled loops."""

"""Numbers in lines of text, parsed by compiled loops."""

"""File formats and their parsers."""

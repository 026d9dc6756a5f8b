"""The version, in the one place every other file reads it from."""

__version__ = "0.1.0"

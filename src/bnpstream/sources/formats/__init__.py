"""File formats, one module each.

A format is a `files.source.Reader` that `files.source.FORMATS` names and `files.detection`
recognises. Most build on one of these:

- `record_reader`: records read one by one, with `fields` that `schemas` detects.
- `number_reader`: lines of numbers, read by compiled loops: `entries` of a matrix, and `pairs`.
- `archives`: arrays, some elements at a time.
"""

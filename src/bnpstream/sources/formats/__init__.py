"""File formats: what bytes of a file mean, a module for each format.

A format is a `files.source.Reader` that `files.source.FORMATS` names and `files.detection`
recognises. Most are made of one of three:

- `record_reader`: records that are read one by one, with `fields` that `schemas` tells apart.
- `number_reader`: lines of numbers, by compiled loops: `entries` of a matrix, and `pairs`.
- `archives`: arrays, some elements at a time.
"""

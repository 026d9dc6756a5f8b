"""Opens a source by name: files, or what is registered under a scheme."""

import re
from collections.abc import Callable, Sequence

from bnpstream.sources.brokers.address import SCHEMES
from bnpstream.sources.protocol import Source
from bnpstream.sources.records import Options, Schema

GROUP = "bnpstream.sources"
"""Entry points in this group are named by schemes, and open names such as ``scheme://...``.

They are called as ``open(names, options, schema, follow=...)``, see `open_source`; also with
``wait`` and ``start`` if these are given.
"""
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://")


def open_source(
    paths: str | Sequence[str],
    options: Options | None = None,
    schema: Schema | None = None,
    *,
    follow: bool = False,
    wait: bool = False,
    start: str | None = None,
) -> Source:
    """Open files, patterns of files such as ``logs/*.jsonl.gz``, standard input, or a broker.

    Parameters
    ----------
    paths : str or sequence of str
        Files and patterns; "-" is standard input. The files of a pattern are sorted by name. Or a
        broker address, such as ``kafka://host:port/topic``, or a name that a package has
        registered.
    options : Options, optional
        Options of the source.
    schema : Schema, optional
        Schema of the records, if known from an earlier run.
    follow : bool
        Wait for more at the end.
    wait : bool
        Wait for a broker that does not answer, as long as it takes.
    start : str, optional
        Where to start reading a broker: "earliest", the default, or "latest".
    """
    names = [paths] if isinstance(paths, str) else list(paths)
    options = options or Options()
    if start not in (None, "earliest", "latest"):
        raise ValueError(f"start is {start!r}: give earliest or latest")
    schemes = {found[1] if (found := _SCHEME.match(name)) else None for name in names}
    ways = {"wait": wait, "start": start}
    more = {way: value for way, value in ways.items() if value}
    if schemes <= {None}:
        if more:
            raise ValueError(
                f"{', '.join(names)}: {next(iter(more))} is for brokers, but these are files: "
                "leave it out"
            )
        from bnpstream.sources.files.source import open_files  # here, as few callers need readers

        return open_files(names, options, schema, follow=follow)
    if len(schemes) > 1:
        raise ValueError(f"{', '.join(names)}: sources of several kinds: read one after the other")
    scheme = schemes.pop() or ""
    if scheme in SCHEMES:
        from bnpstream.sources.brokers.source import open_broker

        return open_broker(names, options, schema, follow=follow, **more)
    return _registered(scheme, names[0])(names, options, schema, follow=follow, **more)


def _registered(scheme: str, name: str) -> Callable[..., Source]:
    """Return the function that opens names of a scheme."""
    from importlib.metadata import entry_points  # here, as it is slow to import

    known = entry_points(group=GROUP)
    if scheme not in known.names:
        there = ", ".join(f"{one}://" for one in sorted({*SCHEMES, *known.names}))
        raise ValueError(
            f"{name}: nothing reads {scheme}://; known are {there}: give one of them, or install "
            f"a package that reads {scheme}://"
        )
    found: Callable[..., Source] = known[scheme].load()
    return found

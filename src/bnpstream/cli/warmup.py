"""``bnpstream warmup``: compile loops before they are needed."""

import typer

from bnpstream.cli.output import print_json
from bnpstream.kernels.jit.cache import KEPT
from bnpstream.runs.options import OptionError
from bnpstream.runs.warmup import KINDS, cache, warm_up


def run_warmup(kind: list[str] | None, as_json: bool) -> None:
    """Compile the loops for some kinds of input; print where they are kept."""
    kinds = list(dict.fromkeys(kind or KINDS))
    for name in kinds:
        if name not in KINDS:
            raise OptionError(f"--kind {name!r}: give one of {', '.join(KINDS)}")
    if not KEPT:
        raise OptionError("nothing to compile: NUMBA_DISABLE_JIT turns the compiler off")
    cache()  # raises if nothing can be cached
    typer.echo("compiling the loops that are not cached yet, for", err=True)
    for name in kinds:
        about = KINDS[name]
        typer.echo(f"  {name}: {about.about} (about {about.seconds} s)", err=True)
    found = []
    for number, warmed in enumerate(warm_up(kinds), start=1):
        said = f"{warmed.compiled} loops compiled" if warmed.compiled else "already compiled"
        place = f"{number} of {len(kinds)}"
        typer.echo(f"{place}: {warmed.kind}, {said}, {warmed.seconds:.1f} s", err=True)
        found.append(warmed._asdict())
    where = cache()
    if as_json:
        print_json({"kinds": found, "cache": where._asdict()})
        return
    if not any(one["compiled"] for one in found):
        print("everything was already compiled")
    print(f"cache: {where.bytes / 1e6:.1f} MB in {len(where.folders)} folders:")
    for folder in where.folders:
        print(f"  {folder}")

"""Compiled loops return numbers: a signal while numba makes a NamedTuple kills the interpreter."""

import importlib
import pkgutil
from typing import NamedTuple, get_args, get_type_hints

import numpy as np
import pytest
from numba.core import types

import bnpstream
from bnpstream import DirichletMultinomial, dirichlet_process
from bnpstream.datasets import bars
from bnpstream.inference import adf, ep, gibbs, visits
from bnpstream.kernels.jit.cache import KEPT
from bnpstream.kernels.jit.decorators import entry
from bnpstream.kernels.statistics.table import DENSE_UP_TO, empty_table, scatter
from bnpstream.kernels.words.levels import count_class, level_of
from bnpstream.mixture import MixtureState, Model, SiteBuffer
from bnpstream.sources import open_source
from states import bits

NUMBERS = (types.Number, types.Boolean, types.NoneType)
MODEL = Model(dirichlet_process(1.0), DirichletMultinomial(0.1))
SETTINGS = adf.Settings(0.1, 1e-4)


class Pair(NamedTuple):
    one: int
    other: int


def entries():
    """Yield the name of every compiled function that Python can call, and the function."""
    for module in pkgutil.walk_packages(bnpstream.__path__, "bnpstream."):
        if module.name.endswith("__main__"):
            continue
        if module.name.startswith("bnpstream.river"):  # may not be installed, and compiles nothing
            continue
        for name, found in vars(importlib.import_module(module.name)).items():
            here = getattr(getattr(found, "py_func", None), "__module__", None) == module.name
            if here and any(found is loop for loop in KEPT):
                yield f"{module.name}.{name}", found


def says_numbers(function):
    """Return whether a function is annotated to return a number, numbers or nothing."""
    hint = get_type_hints(function)["return"]
    parts = get_args(hint) if getattr(hint, "__origin__", None) is tuple else (hint,)
    return all(part in (int, float, bool, type(None)) for part in parts)


def returned(function):
    """Return the numba types that a function returns, for all types it was compiled for."""
    return [overload.signature.return_type for overload in function.overloads.values()]


def is_plain(kind):
    """Return whether a numba type is a number, or a plain tuple of numbers."""
    if isinstance(kind, types.BaseNamedTuple):
        return False
    parts = kind.types if isinstance(kind, types.BaseTuple) else (kind,)
    return all(isinstance(part, NUMBERS) for part in parts)


def wide(n_rows, n_columns=DENSE_UP_TO + 1000, seed=0):
    """Return short documents over a wide vocabulary, whose table is hashed."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((n_rows, n_columns), np.int64)
    for i in range(n_rows):
        first = 1000 * (i % 8)
        np.add.at(counts[i], first + rng.integers(0, 900, size=60), 1)
    return counts


def ran(counts):
    """Return what a pass, a sweep and a Gibbs sweep make of documents: they compile the loops."""
    batch = MODEL.likelihood.encode(counts)
    kernel = MODEL.kernel_arguments(batch)
    state, sites = MixtureState(batch.n_statistics), SiteBuffer(len(batch))
    list(visits.visit(MODEL, state, batch, SiteBuffer(), sites, SETTINGS, kernel))
    epoch = ep.sweep(
        MODEL, state, batch, sites, adf.Settings(0.1, 0.0), kernel
    )  # into all clusters
    chain = gibbs.init(MODEL, batch)
    gibbs.sweep(MODEL, chain, batch, np.random.default_rng(1).random(len(batch)), kernel)
    return epoch, state, chain


def test_every_entry_is_annotated_to_return_numbers():
    found = dict(entries())
    assert len(found) > 30
    unsaid = {name for name, function in found.items() if not says_numbers(function.py_func)}
    assert unsaid == {  # of any width, see below
        "bnpstream.kernels.words.levels.level_of",
        "bnpstream.kernels.words.levels.count_class",
    }


def test_what_was_compiled_returns_numbers(tmp_path):
    ran(bars(n_images=40, seed=1).counts)
    ran(wide(40))
    scatter(empty_table(4, DENSE_UP_TO + 1), 0, np.arange(70), np.ones(70))
    count_class(40.0)
    level_of(40.0, 8, np.zeros(256, np.uint16))
    DirichletMultinomial(0.1).encode(np.array([[3, 0, 1]])).kernel_rows  # noqa: B018
    (tmp_path / "docword.txt").write_text("2\n3\n3\n1 1 2\n1 2 1\n2 3 4\n")
    (tmp_path / "rows.ldac").write_text("2 0:1 2:3\n1 1:1\n")
    for path in tmp_path.iterdir():
        with open_source(str(path)) as source:
            assert sum(len(records) for records, _ in source.batches(10)) == 2
    found = {name: returned(function) for name, function in entries()}
    needed = ("visits.visit", "gibbs.sweep", "set_columns", "line_up", "levels.level_of")
    needed += ("count_class", "parse_entries", "parse_pairs", "fill_tokens")
    for part in needed:
        assert any(name.endswith(part) and kinds for name, kinds in found.items()), part
    wrong = {name: kinds for name, kinds in found.items() if not all(map(is_plain, kinds))}
    assert wrong == {}


def test_a_named_tuple_would_be_noticed():
    @entry
    def paired(one):
        return Pair(one, one)

    paired(1)
    assert not all(map(is_plain, returned(paired)))


@pytest.mark.kernel
def test_tables_that_run_out_of_space_change_no_bit(monkeypatch):
    """A loop stops in the middle of a row, and goes on where the table is longer."""
    found, n_stops = [], []
    for spare in (0, 2**22):
        stops, make_space = [], MixtureState.make_space

        def counted(state, wanted, stops=stops, make_space=make_space):
            if wanted > 0:
                stops.append(state.n_observations - state.total_mass > 0.5)  # a row is out
            make_space(state, wanted)

        first = empty_table

        def roomy(*arguments, spare=spare, first=first, **options):
            table = first(*arguments, **options)
            more = spare if table.keys.size > 0 else 0
            return table._replace(
                values=np.append(table.values, np.zeros(more)),
                keys=np.append(table.keys, np.full(more if more else 0, -1, np.int32)),
            )

        with monkeypatch.context() as patch:
            patch.setattr(MixtureState, "make_space", counted)
            patch.setattr("bnpstream.mixture.state.empty_table", roomy)
            patch.setattr("bnpstream.mixture.tables.empty_table", roomy)
            epoch, state, chain = ran(wide(120, seed=2))
        found.append([epoch, *bits(state), *bits(chain.state), chain.assignments.tobytes()])
        n_stops.append((len(stops), sum(stops)))
    assert n_stops[0][0] > 5
    assert n_stops[0][1] > 0
    assert n_stops[1] == (0, 0)
    assert found[0] == found[1]


@pytest.mark.kernel
def test_a_row_that_waits_for_space_is_not_lost(monkeypatch):
    """Ctrl-C while a row is out of the posterior puts it back."""
    counts = wide(60, seed=3)
    batch = MODEL.likelihood.encode(counts)
    kernel = MODEL.kernel_arguments(batch)
    state, sites = MixtureState(batch.n_statistics), SiteBuffer(len(batch))
    list(visits.visit(MODEL, state, batch, SiteBuffer(), sites, SETTINGS, kernel))
    state.compact()
    before, n_out = state.total_mass, []

    def interrupted(state, wanted):
        if wanted > 0:
            n_out.append(before - state.total_mass)
            raise KeyboardInterrupt

    monkeypatch.setattr(MixtureState, "make_space", interrupted)
    harder = adf.Settings(0.1, 0.0)
    new = SiteBuffer(len(batch))
    with pytest.raises(KeyboardInterrupt):
        list(visits.visit(MODEL, state, batch, sites, new, harder, kernel))
    assert n_out[0] > 0.5
    np.testing.assert_allclose(state.total_mass, before, rtol=1e-12)
    np.testing.assert_allclose(state.masses.sum(), before, rtol=1e-12)

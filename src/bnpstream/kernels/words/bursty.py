"""What a bursty document adds to a cluster: its tables (see ``kernels.words.tables``)."""

from bnpstream.kernels.jit.dispatch import specialize
from bnpstream.kernels.passes.contributions import contribution_of
from bnpstream.kernels.statistics.table import locate
from bnpstream.kernels.words.dirichlet import BurstyDirichletMultinomial
from bnpstream.kernels.words.tables import ROUNDS, tables_of


@specialize(contribution_of, BurstyDirichletMultinomial)
def _tables(likelihood, table, rows, i, k, entries, line):  # type: ignore[no-untyped-def]
    """Find the tables of every word, given the total of all tables, a few times."""
    first, last = rows.indptr[i], rows.indptr[i + 1] - 1
    locate(table, k, rows.indices, first, last + 1, entries)
    total = likelihood.total + table.values[entries[last - first]]
    line[:] = 1.0
    n_tables = last - first + 0.0
    for _ in range(ROUNDS):
        rate = 1.0 / (likelihood.burstiness * (total + n_tables - 0.5))
        n_tables = last - first + 0.0
        for r in range(rows.repeat_ptr[i], rows.repeat_ptr[i + 1]):
            j = rows.repeats[r] - first
            base = likelihood.alpha[rows.indices[first + j]] + table.values[entries[j]]
            line[j] = tables_of(rows.values[first + j], base, rate)
            n_tables += line[j] - 1.0
    line[last - first] = n_tables

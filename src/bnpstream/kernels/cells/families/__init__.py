"""Families of columns, a module each: what is derived of a cluster, scores, and adding a row.

A module has three compiled functions, which blocks of its kind are handed to. They are inlined:
handing over their arrays would take a twentieth of a pass.

    derive(p, cells, row, s, pairs, out)          fill `out` with what scores need of a cluster;
                                                  return whether its cells differ in their counts
    score(v, at, x, cells, width, even, scores, work)
                                                  add log densities of one row to those of clusters
    add(row, s, pairs, x, cells, share)           add a row's statistics to a cluster's, Eq. (18)

`p` are the parameters of the block, `row` the statistics of a cluster, which begin at `s` and whose
low parts are `pairs` further on. `v` are derived numbers of all clusters, of which the block's
begin at `at`; `x` are the block's cells, of which there are `cells`; `width` slots are scored, and
`even` says that no cell of the row is missing and that none was missing more often than others in
any cluster.

Floor of the scores: every derived number is read once, a vector of clusters at a time; what is more
is a logarithm per (cluster, block), or per (cluster, cell) where cells are missing.
"""

"""One stream absorbed in parts in parallel, by threads, processes or machines.

- `staleness`: which posterior a part starts from;
- `changes`: what a part did to it;
- `resolution`: applies that to a newer posterior, and matches new clusters;
- `replica`: a posterior moved from version to version by changes;
- `rounds`: parts absorbed by threads of one process;
- `shards`: EP over parts;
- `sweeps`: EP over parts by threads of one process.

Version v of a posterior contains the first v parts, and every copy of it has the same bits.
"""

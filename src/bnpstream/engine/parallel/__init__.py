"""One stream absorbed in parts side by side: by threads, processes or machines, whoever moves them.

- `staleness`: which posterior a part starts from;
- `changes`: what a part did to it;
- `resolution`: what that means for a newer one, new clusters being matched;
- `replica`: a posterior brought from version to version by changes;
- `shards`: EP over parts.

Version v of a posterior has the first v parts in it, and it is the same bits in every copy.
"""

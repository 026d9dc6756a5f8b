"""Calling the same loop again: the types of its arguments are looked at once."""

from typing import Any


class Recalled:
    """A loop over rows that is chosen once for the parameters of a model, then called directly.

    At every call numba looks at the type of every array, which takes longer than a row does. These
    types follow from the parameters of prior and likelihood, which are compared by identity, and
    from the class of the rows: all other arrays are made by this package, and always alike.

    Parameters
    ----------
    entry : function
        Compiled; its arguments are the parameters of prior and likelihood, clusters, their cache,
        rows, and others.
    """

    def __init__(self, entry: Any) -> None:
        self._entry = entry
        self._known: tuple[Any, Any, Any, Any] = (None, None, None, None)

    def __call__(self, prior: Any, likelihood: Any, *arguments: Any) -> Any:
        """Call the loop."""
        rows, known = type(arguments[2]), self._known
        if known[0] is not prior or known[1] is not likelihood or known[2] is not rows:
            self._known = (prior, likelihood, rows, None)
            return self._entry(prior, likelihood, *arguments)
        loop = known[3]
        if loop is None:
            loop = self._chosen(prior, likelihood, *arguments)
            self._known = (prior, likelihood, rows, loop)
        return loop(prior, likelihood, *arguments)

    def _chosen(self, *arguments: Any) -> Any:
        """Return the loop for arguments of these types; without a compiler there is only one."""
        if not hasattr(self._entry, "overloads"):
            return self._entry
        kinds = tuple(self._entry.typeof_pyval(argument) for argument in arguments)
        compiled = self._entry.overloads.get(kinds)
        return self._entry if compiled is None else compiled.entry_point

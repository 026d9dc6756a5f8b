"""Compiled loops on disk, also those for classes of other packages.

numba keeps an index for every function: the types that it was compiled for. It is read as a whole,
so one class of a package that is no longer there, and the function fails for all others. And it is
thrown away when the function's own file changes, not when the score that was compiled into it does.
So loops for classes of other packages have an index of their own, which is stamped with the files
that their scores are in.

The same goes for loops of this package: an index names classes of an older version, or holds loops
into which functions of another file were compiled that have changed since. So every index is also
marked with all files of the kernels, and one with another mark is not looked into.
"""

import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

from bnpstream.kernels.jit.dispatch import SOURCES
from bnpstream.kernels.jit.turns import Turn, alone

HERE = __name__.partition(".")[0]
KEPT: list[Any] = []
"""Functions whose compiled loops are kept on disk; none without a compiler."""
TURN = Turn()


@cache
def kernels_mark() -> str:
    """Return what tells these kernels from those of another version, or before an edit."""
    kernels = Path(__file__).parents[1]
    files = [(file.relative_to(kernels), file.stat()) for file in sorted(kernels.rglob("*.py"))]
    stamps = [(str(name), stat.st_mtime_ns, stat.st_size) for name, stat in files]
    return f"{numba.__version__} {sha256(repr(stamps).encode()).hexdigest()}"


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let signals wait meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class LoopFile(IndexDataCacheFile):
    """numba's index of one function, empty if it was written by other kernels."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._version = kernels_mark()

    def save(self, key: Any, data: Any) -> None:
        """Keep a loop, its code first: what an index names is never the code of another loop.

        Processes that keep several loops of one function at once would give them the same name.
        """
        with alone(Path(f"{self._index_path}.lock")):
            loops = self._load_index()
            names = map(self._data_name, count(1))
            name = loops.get(key) or next(name for name in names if name not in loops.values())
            self._save_data(name, data)
            self._save_index({**loops, key: name})


class LoopCache(FunctionCache):
    """numba's cache of one function, with an index for every set of classes from elsewhere.

    It looks for a folder when the function is first compiled or read: most never are, as those who
    call them were compiled with them. What it is marked with is known from the start.
    """

    def __init__(self, function: Any) -> None:
        self._name, self._py_func = repr(function), function
        kernels_mark()
        self.enable()

    @cached_property
    def _impl(self) -> Any:
        return self._impl_class(self._py_func)

    @cached_property
    def _cache_path(self) -> Any:
        return self._impl.locator.get_cache_path()

    @cached_property
    def _cache_file(self) -> LoopFile:  # type: ignore[override]
        return LoopFile(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled loop; numba would be broken by an interrupt while it reads its own."""
        with undisturbed():
            return super().load_overload(sig, target_context)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        with self._turned_to(sig):
            found = super()._load_overload(sig, target_context)
            if found is None and self._enabled:
                with suppress(OSError):
                    self._impl.locator.ensure_cache_path()
                    TURN.take(self._turn(sig))
                found = super()._load_overload(sig, target_context)  # by another process meanwhile
                if found is not None:
                    TURN.end(self._turn(sig))
            return found

    def _save_overload(self, sig: Any, data: Any) -> None:
        with self._turned_to(sig):
            super()._save_overload(sig, data)
            if self._enabled:
                TURN.end(self._turn(sig))

    def _turn(self, sig: Any) -> Path:
        """Return the file that is locked while a loop for a signature is compiled."""
        digest = sha256(repr(sig).encode()).hexdigest()[:16]
        return Path(self._cache_path, f"{self._impl.filename_base}.{digest}.turn")

    @contextmanager
    def _turned_to(self, sig: Any) -> Iterator[None]:
        """Use the index for a signature meanwhile; numba's lock on compilation is held."""
        before = self._cache_file, self._enabled
        foreign = foreign_classes(getattr(sig, "args", sig))
        if foreign:
            names = ",".join(f"{cls.__module__}.{cls.__qualname__}" for cls in foreign)
            stamps = [stamp for cls in foreign for stamp in source_stamps(cls)]
            self._enabled = self._enabled and all(map(is_importable, foreign))
            self._cache_file = LoopFile(
                self._cache_path,
                f"{self._impl.filename_base}.{sha256(names.encode()).hexdigest()[:16]}",
                (self._impl.locator.get_source_stamp(), *stamps),
            )
        try:
            yield
        finally:
            self._cache_file, self._enabled = before


def kept(function: Any) -> Any:
    """Have what is compiled of a function kept on disk; without a compiler there is nothing."""
    if hasattr(function, "enable_caching"):
        function._cache = LoopCache(function.py_func)
        KEPT.append(function)
    return function


def kept_in(function: Any) -> Path:
    """Return the folder that a function's loops are kept in; RuntimeError if there is none."""
    return Path(function._cache.cache_path)


def foreign_classes(kinds: Iterable[Any]) -> list[type]:
    """Return the NamedTuple classes in numba's types that are not this package's, by name."""
    found = {cls for cls in _classes(kinds) if cls.__module__.partition(".")[0] != HERE}
    return sorted(found, key=lambda cls: (cls.__module__, cls.__qualname__))


def _classes(kinds: Iterable[Any]) -> Iterator[type]:
    for kind in kinds:
        if hasattr(kind, "instance_class"):
            yield kind.instance_class
        yield from _classes(getattr(kind, "types", ()))


def is_importable(cls: type) -> bool:
    """Return whether another process finds the class by its name: not one of a notebook."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    found: Any = module if file is not None and cls.__module__ != "__main__" else None
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is cls


def source_stamps(cls: type) -> list[tuple[str, float, int]]:
    """Return name, time and size of the files that a class and its functions are in."""
    files = {getattr(sys.modules.get(cls.__module__), "__file__", None), *SOURCES.get(cls, ())}
    stats = [(file, Path(file).stat()) for file in files if file and Path(file).is_file()]
    return sorted((str(file), stat.st_mtime, stat.st_size) for file, stat in stats)

"""Tables of any library: pandas, Polars and Arrow, through narwhals."""

from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

if TYPE_CHECKING:  # most rows are arrays, and it is slow to import
    import narwhals.stable.v1 as nw

LIBRARIES = {
    "pandas": ("pandas", "DataFrame"),
    "polars": ("polars", "DataFrame"),
    "arrow": ("pyarrow", "table"),
}
"""Libraries of data frames: their modules, and functions that make a frame from columns."""


def as_frame(X: Any) -> "nw.DataFrame[Any] | None":
    """Return X as a data frame if it is one, else None."""
    if isinstance(X, np.ndarray | list | tuple) or issparse(X):
        return None
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def check_table(X: Any) -> None:
    """Raise ValueError unless X, dense or sparse, is a matrix of real cells with some rows."""
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X must hold numbers, got dtype {X.dtype}")
    if X.ndim != 2:
        raise ValueError(
            f"X must be a matrix with a row for every observation, got {X.ndim} dimension(s). "
            "Reshape your data: for a single row use X.reshape(1, -1)"
        )
    if 0 in X.shape:
        lacking = "sample" if X.shape[0] == 0 else "feature"
        raise ValueError(
            f"X is empty, its shape is {X.shape}: 0 {lacking}(s) (shape={X.shape}) while a minimum "
            "of 1 is required."
        )


def check_sparse(X: Any) -> None:
    """Raise ValueError if the pointers or indices of a sparse matrix lead out of it.

    SciPy trusts them: what leads astray would end the process.
    """
    try:
        fault = _fault_of(X)
    except (AttributeError, IndexError, TypeError, ValueError):
        fault = "its parts are not arrays that belong together"
    if fault:
        raise ValueError(f"X is a damaged {X.format} matrix: {fault}")


def _fault_of(X: Any) -> str:
    """Say how a sparse matrix leads out of itself; nothing if it does not."""
    size = X.data.shape[0] if X.format in ("csr", "csc", "bsr", "dia") else X.nnz
    if X.format == "dia":
        n_rows, n_columns = X.shape
        is_sound = X.offsets.shape == (size,) and X.data.ndim == 2
        if is_sound and ((-n_rows < X.offsets) & (X.offsets < n_columns)).all():
            return ""
        return "its offsets lead out of it"
    if X.format in ("csr", "csc", "bsr"):
        block = X.blocksize if X.format == "bsr" else (1, 1)
        n, n_other = (n // one for n, one in zip(X.shape, block, strict=True))
        if X.format == "csc":
            n, n_other = n_other, n
        ends, places = X.indptr, X.indices
        is_sound = ends.shape == (n + 1,) and places.ndim == 1 and ends.dtype.kind in "iu"
        is_sound = is_sound and ends[0] == 0 and bool((ends[1:] >= ends[:-1]).all())
        if not is_sound or ends[-1] > min(places.size, size):
            return "its indptr leads out of it"
        found = [(places[: ends[-1]], n_other)]
    else:
        found = list(zip(X.tocoo().coords, X.shape, strict=True))
    for places, n in found:
        if places.size and not (
            places.dtype.kind in "iu" and 0 <= places.min() <= places.max() < n
        ):
            return (
                f"it has indices from {places.min()} to {places.max()}, and they must be in "
                f"0..{n - 1}"
            )
    return ""


def as_array(X: Any) -> Any:
    """Return a data frame's cells as an array; anything else unchanged."""
    frame = as_frame(X)
    return X if frame is None else frame.to_numpy()


def as_rows(X: Any) -> Any:
    """Return X as an array, or sparse if it is; columns of mixed types become objects.

    A data frame with one kind of numbers becomes an array of them. Missing cells are NaN if all
    cells are numbers, else None.
    """
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X.astype(np.float64), np.nan)
    if issparse(X):
        check_sparse(X)
        return X
    frame = as_frame(X)
    if frame is None:
        return X if isinstance(X, np.ndarray) else _guarded(X)
    import narwhals.stable.v1 as nw

    kinds = list(frame.schema.values())
    if all(kind.is_numeric() for kind in kinds):
        return frame.to_numpy()
    if all(kind == nw.Boolean for kind in kinds):
        has_nulls = any(column.null_count() > 0 for column in frame.iter_columns())
        return as_labels(X) if has_nulls else frame.to_numpy()
    return as_labels(X)


def _guarded(X: Any) -> Any:
    """Return lists as an array; of objects if there are both labels and numbers."""
    table = np.asarray(X)
    return np.array(X, dtype=object) if table.dtype.kind in "US" else table


def names_of(X: Any) -> list[str] | None:
    """Return the names of a data frame's columns, or None."""
    frame = as_frame(X)
    return None if frame is None else frame.columns


def listed(columns: Any) -> Any:
    """Return one column, given by position or name, as a list; anything else unchanged."""
    return [columns] if isinstance(columns, Integral | str) else columns


def columns_of(X: Any, columns: Any) -> Any:
    """Return some columns of a matrix or a data frame.

    Parameters
    ----------
    X : array-like, sparse or data frame of shape (n, D)
        Rows.
    columns : int, str, slice or list of int or str
        Positions, or names if X is a data frame.
    """
    wanted = listed(columns)
    frame = as_frame(X)
    if frame is None:
        if not isinstance(wanted, slice) and any(isinstance(name, str) for name in wanted):
            raise ValueError(
                f"columns {wanted!r} are names, but X is not a data frame: give positions"
            )
        # Lists of mixed rows would become strings.
        dtype = None if isinstance(X, np.ndarray) else object
        matrix: Any = X if issparse(X) else np.asarray(X, dtype=dtype)
        _check_positions(wanted, int(matrix.shape[1]))
        return matrix[:, wanted]
    known = frame.columns
    _check_positions(wanted, len(known))
    positions = range(len(known))[wanted] if isinstance(wanted, slice) else wanted
    absent = [c for c in positions if isinstance(c, str) and c not in known]
    if absent:
        raise ValueError(f"X has no column {absent[0]!r}; it has {', '.join(map(repr, known))}")
    places = [int(c) if isinstance(c, Integral) else known.index(str(c)) for c in positions]
    return frame[:, places].to_native()


def _check_positions(wanted: Any, n_columns: int) -> None:
    """Raise ValueError if a position is beyond the last column."""
    for c in [] if isinstance(wanted, slice) else wanted:
        if isinstance(c, Integral) and not -n_columns <= int(c) < n_columns:
            raise ValueError(f"X has no column {c}; it has {n_columns}, numbered from 0")


def as_labels(X: Any) -> NDArray[np.object_]:
    """Return X as a matrix of labels, with None for missing ones."""
    frame = as_frame(X)
    if frame is not None:
        labels = np.empty(frame.shape, dtype=object)
        for j, column in enumerate(frame.iter_columns()):
            labels[:, j] = column.to_list()
    else:
        sparse: Any = X
        X = sparse.toarray() if issparse(X) else X
        mask = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
        labels = np.array(np.ma.getdata(X) if mask is not None else X, dtype=object)
        if mask is not None:
            labels[mask] = None
    check_table(labels)
    missing = np.array([[_is_missing(x) for x in row] for row in labels], dtype=bool)
    labels[missing.reshape(labels.shape)] = None
    return labels


def _is_missing(x: Any) -> bool:
    """Return whether a cell is None, NaN, or pandas' NA, whose comparisons are NA."""
    try:
        return x is None or bool(x != x)
    except TypeError:
        return True


def frame_of(columns: dict[str, list[Any]], to: str) -> Any:
    """Return columns as a data frame of a library; ValueError for an unknown one.

    Parameters
    ----------
    columns : dict of lists
        Columns by name, all of the same length.
    to : {"pandas", "polars", "arrow"}
        The library.
    """
    if to not in LIBRARIES:
        known = ", ".join(f'"{name}"' for name in LIBRARIES)
        raise ValueError(f"to must be one of {known}, got {to!r}")
    name, make = LIBRARIES[to]
    try:
        library = import_module(name)
    except ModuleNotFoundError as error:
        others = ", ".join(f'to="{other}"' for other in LIBRARIES if other != to)
        raise ModuleNotFoundError(
            f'a frame for to="{to}" needs {name}, which is missing: pip install {name}, or give '
            f"{others}",
            name=name,
        ) from error
    return getattr(library, make)(columns)

"""The interface for river: records are dicts, one at a time, and features come and go."""

try:
    import river.base  # noqa: F401
except ImportError as error:
    raise ImportError(
        "bnpstream.river needs river: pip install 'bnpstream[river]'", name="river"
    ) from error

from bnpstream.river.mixture import StreamingMixture

__all__ = ["StreamingMixture"]

"""The River API: learn from dicts, one at a time; new features and grades may appear."""

try:
    import river as _river  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name != "river":
        raise
    raise ModuleNotFoundError(
        "ordspan.river needs river: pip install 'ordspan[river]'", name="river"
    ) from None

from ordspan.river.metrics import IntervalMAE
from ordspan.river.models import OrdinalPA, PRank

__all__ = ["IntervalMAE", "OrdinalPA", "PRank"]

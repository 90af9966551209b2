"""The River API: learn from dicts, one at a time; new features and grades may appear."""

from ordspan.wording import report_missing

with report_missing():
    from ordspan.river.models import IntervalMAE, OrdinalPA, PRank

__all__ = ["IntervalMAE", "OrdinalPA", "PRank"]

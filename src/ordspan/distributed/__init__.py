"""Training and prediction on Dask clusters; the client is yours."""

from ordspan.wording import report_missing

with report_missing():
    from ordspan.distributed.cluster import predict
    from ordspan.distributed.training import Progress, Round, fit

__all__ = ["Progress", "Round", "fit", "predict"]

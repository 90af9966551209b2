"""Training and prediction on Dask clusters; the client is yours."""

from importlib import import_module

for _part in ("dask", "distributed", "pandas", "polars", "pyarrow"):
    try:
        import_module(_part)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"training on Dask needs {_part}: pip install 'ordspan[dask]'", name=_part
        ) from None

from ordspan.distributed.blocks import predict  # noqa: E402
from ordspan.distributed.training import Progress, Round, fit  # noqa: E402

__all__ = ["Progress", "Round", "fit", "predict"]

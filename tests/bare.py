"""A process that has imported what ordspan always needs: neither an extra nor ordspan itself."""

import sys
from importlib import import_module

EXTRAS = (
    "dask",
    "distributed",
    "fastapi",
    "fastexcel",
    "filelock",
    "matplotlib",
    "onnx",
    "pandas",
    "plotly",
    "polars",
    "pooch",
    "prometheus_client",
    "pyarrow",
    "rich",
    "river",
    "typer",
    "uvicorn",
)


NEEDED = ("numba.np.arraymath", "safetensors.numpy", "sklearn.model_selection")


class Missing:
    """The packages that are not installed."""

    names: tuple[str, ...] = ()

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


MISSING = Missing()


def hide(names):
    """Pretend that exactly these packages are missing; none of them may be imported already."""
    assert not {*names} & {*sys.modules}
    if MISSING not in sys.meta_path:
        sys.meta_path.insert(0, MISSING)
    MISSING.names = names


def warm_up():
    hide(EXTRAS)
    for name in NEEDED:
        import_module(name)
    assert not {"ordspan", *EXTRAS} & {*sys.modules}
    hide(())

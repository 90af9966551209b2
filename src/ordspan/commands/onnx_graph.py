"""Builder for ONNX graphs: nodes and constants by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Graph:
    """Nodes and constants so far."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    @property
    def constants(self) -> list[Any]:
        """All constants, in the order in which they were first used."""
        return list(self._constants.values())

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """A constant of this name."""
        from onnx import numpy_helper

        self._constants.setdefault(name, numpy_helper.from_array(values, name))
        return name

    def add(self, operator: str, *values: str, result: str = "", **attributes: Any) -> str:
        """Add an operator; returns the name of its result."""
        from onnx import helper

        name = result or f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, values, [name], name=name, **attributes))
        return name

    def count(self, conditions: str) -> str:
        """Count the true conditions along the last axis."""
        from onnx import TensorProto

        ones = self.add("Cast", conditions, to=TensorProto.INT64)
        return self.add("ReduceSum", ones, self.constant("across", np.array([-1])), keepdims=0)

"""`to_onnx`: a traced program as an ONNX model, its stops as Identity nodes with a note that `from_onnx` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from stopgrad.core.arrays import Shape, Spec
from stopgrad.core.errors import InterchangeError
from stopgrad.core.lazy import onnx
from stopgrad.graph.tracing import Traced
from stopgrad.interchange.composites import COMPOSITES
from stopgrad.interchange.exporting import Axes, Exporter, Value
from stopgrad.interchange.lowering import LOWERING
from stopgrad.primitives.geometry import Geometry

OPSET = 20
_IR_VERSION = 9  # what goes with this opset
NOTE = "stopgrad.gate"
"""The key of a node's metadata under which its gate is noted."""


def to_onnx(traced: Traced) -> bytes:
    """Write a traced program as an ONNX model, of opset 20.

    ONNX has no stops. One becomes an Identity with the note "stop_gradient:NAME" as its node's name, its doc string and
    in its metadata; `from_onnx` makes it a stop again. Programs that optimise models may remove the node, as it is an
    identity. `prevent_gradient` is noted in the same way. Inputs and outputs have the names of the operations;
    variables become initializers of their present value. What ONNX lacks is written with several nodes.

    Args:
        traced: what `trace(f)(*args)` returned.

    Returns:
        The serialised model.

    Raises:
        InterchangeError: the program has operations without counterpart, such as loops, or gates that let part of a
            derivative pass; the text lists them.

    Example:
        >>> import stopgrad as sg
        >>> from stopgrad.interchange import from_onnx, to_onnx
        >>> model = to_onnx(sg.trace(lambda x: sg.stop_gradient(x, name="target") * x)(3.0))
        >>> float(sg.grad(from_onnx(model))(3.0))
        3.0
    """
    data: bytes = _OnnxExporter(traced, "to_onnx", COMPOSITES, LOWERING).export()
    return data


class _OnnxExporter(Exporter):
    """Writes nodes of an ONNX graph."""

    elementwise: ClassVar[Mapping[str, str]] = {
        "absolute": "Abs",
        "add": "Add",
        "arccos": "Acos",
        "arccosh": "Acosh",
        "arcsin": "Asin",
        "arcsinh": "Asinh",
        "arctan": "Atan",
        "arctanh": "Atanh",
        "bitwise_and": "BitwiseAnd",
        "bitwise_invert": "BitwiseNot",
        "bitwise_or": "BitwiseOr",
        "bitwise_xor": "BitwiseXor",
        "ceil": "Ceil",
        "cos": "Cos",
        "cosh": "Cosh",
        "divide": "Div",
        "equal": "Equal",
        "erf": "Erf",
        "exp": "Exp",
        "floor": "Floor",
        "fmod": "Mod",
        "greater": "Greater",
        "greater_equal": "GreaterOrEqual",
        "isinf": "IsInf",
        "isnan": "IsNaN",
        "less": "Less",
        "less_equal": "LessOrEqual",
        "log": "Log",
        "logical_and": "And",
        "logical_not": "Not",
        "logical_or": "Or",
        "logical_xor": "Xor",
        "maximum": "Max",
        "minimum": "Min",
        "multiply": "Mul",
        "negative": "Neg",
        "power": "Pow",
        "reciprocal": "Reciprocal",
        "relu": "Relu",
        "rint": "Round",
        "sigmoid": "Sigmoid",
        "sign": "Sign",
        "sin": "Sin",
        "sinh": "Sinh",
        "softplus": "Softplus",
        "sqrt": "Sqrt",
        "subtract": "Sub",
        "tan": "Tan",
        "tanh": "Tanh",
    }

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._onnx = onnx()
        self._nodes: list[Any] = []
        self._initializers: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def node(self, op: str, inputs: Sequence[Value], spec: Spec, **attributes: Any) -> Value:
        if op == "Mod":
            attributes["fmod"] = 1
        name = self.inner(op)
        made = self._onnx.helper.make_node(op, [one.name for one in inputs], [name], name=name, **attributes)
        self._nodes.append(made)
        self.last = name
        return Value(name, tuple(spec.shape), np.dtype(spec.dtype))

    def do(self, kind: str, *values: Value) -> Value:
        if kind in ("remainder", "floor_divide") and values[0].dtype.kind in "iu":
            a, b = values
            rest = self.node("Mod", values, Spec(np.broadcast_shapes(a.shape, b.shape), a.dtype))
            del self._nodes[-1].attribute[:]  # Python's remainder, not C's
            return rest if kind == "remainder" else self.do("divide", self.do("subtract", a, rest), b)
        return super().do(kind, *values)

    def renamed(self, value: Value, name: str) -> Value:
        made = self._nodes[-1]
        if made.name == made.output[0]:  # a gate's is its note
            made.name = name
        made.output[0] = name
        return value._replace(name=name)

    def _type(self, dtype: Any) -> int:
        dtype = np.dtype(dtype)
        if dtype.kind == "c":
            raise InterchangeError(f"{self.what}: ONNX has next to no operations on complex numbers")
        found: int = self._onnx.helper.np_dtype_to_tensor_dtype(dtype)
        return found

    def placeholder(self, name: str, spec: Spec) -> Value:
        self._inputs.append(self._onnx.helper.make_tensor_value_info(name, self._type(spec.dtype), spec.shape))
        return Value(name, tuple(spec.shape), np.dtype(spec.dtype))

    def output(self, name: str, value: Value) -> None:
        self._nodes.append(self._onnx.helper.make_node("Identity", [value.name], [name], name=name))
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, self._type(value.dtype), value.shape))

    def finished(self) -> bytes:
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, "stopgrad", self._inputs, self._outputs, self._initializers)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR_VERSION, producer_name="stopgrad"
        )
        data: bytes = model.SerializeToString(deterministic=True)
        return data

    def constant(self, array: np.ndarray, name: str = "constant") -> Value:
        self._type(array.dtype)
        made = Value(self.inner(name), array.shape, array.dtype)
        self._initializers.append(
            self._onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), made.name)
        )
        return made

    def _integers(self, numbers: Any) -> Value:
        return self.constant(np.asarray(numbers, np.int64))

    def gate(self, kind: str, x: Value, label: str | None) -> Value:
        made = self.node("Identity", [x], Spec(x.shape, x.dtype))
        note = kind if label is None else f"{kind}:{label}"
        node = self._nodes[-1]
        node.name = self.unique(note) if label is None else note
        node.doc_string = note
        node.metadata_props.add(key=NOTE, value=note)
        return made

    def cast(self, x: Value, dtype: Any) -> Value:
        if np.dtype(x.dtype) == np.dtype(dtype):
            return x
        return self.node("Cast", [x], Spec(x.shape, dtype), to=self._type(dtype))

    def reshape(self, x: Value, shape: Shape) -> Value:
        if x.shape == tuple(shape):
            return x
        return self.node("Reshape", [x, self._integers(shape)], Spec(shape, x.dtype), allowzero=1)

    def transpose(self, x: Value, axes: Axes) -> Value:
        if tuple(axes) == tuple(range(x.ndim)):
            return x
        return self.node("Transpose", [x], Spec(tuple(x.shape[i] for i in axes), x.dtype), perm=list(axes))

    def broadcast(self, x: Value, shape: Shape) -> Value:
        if x.shape == tuple(shape):
            return x
        return self.node("Expand", [x, self._integers(shape)], Spec(shape, x.dtype))

    def reduce(self, kind: str, x: Value, axes: Axes, keepdims: bool) -> Value:
        if kind in ("any", "all"):
            numbers = self.cast(x, np.dtype(np.int32))
            return self.cast(self.reduce("max" if kind == "any" else "min", numbers, axes, keepdims), np.dtype(bool))
        if not axes:
            return x
        shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes)
        op = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd"}
        return self.node(op[kind], [x, self._integers(axes)], Spec(shape, x.dtype), keepdims=int(keepdims))

    def arg(self, kind: str, x: Value, axis: int) -> Value:
        op = {"argmax": "ArgMax", "argmin": "ArgMin"}[kind]
        spec = Spec(x.shape[:axis] + x.shape[axis + 1 :], np.dtype(np.int64))
        return self.node(op, [x], spec, axis=axis, keepdims=0)

    def matmul(self, a: Value, b: Value) -> Value:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return self.node("MatMul", [a, b], Spec((*batch, a.shape[-2], b.shape[-1]), a.dtype))

    def einsum(self, equation: str, a: Value, b: Value, shape: Shape) -> Value:
        return self.node("Einsum", [a, b], Spec(shape, a.dtype), equation=equation)

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        shape = list(parts[0].shape)
        shape[axis] = sum(one.shape[axis] for one in parts)
        return self.node("Concat", parts, Spec(tuple(shape), parts[0].dtype), axis=axis)

    def cut(self, x: Value, ranges: Sequence[range]) -> Value:
        if all(one == range(n) for one, n in zip(ranges, x.shape, strict=True)):
            return x
        starts = [one.start for one in ranges]
        ends = [one.stop if one.stop >= 0 else -n - 1 for one, n in zip(ranges, x.shape, strict=True)]
        steps = [one.step for one in ranges]
        inputs = [x, *map(self._integers, (starts, ends, range(x.ndim), steps))]
        return self.node("Slice", inputs, Spec(tuple(map(len, ranges)), x.dtype))

    def gather(self, x: Value, indices: Value, axis: int) -> Value:
        spec = Spec((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
        return self.node("Gather", [x, indices], spec, axis=axis)

    def pad(self, x: Value, widths: Sequence[tuple[int, int]], fill: float) -> Value:
        shape = tuple(before + n + after for n, (before, after) in zip(x.shape, widths, strict=True))
        sizes = self._integers([*(before for before, _ in widths), *(after for _, after in widths)])
        return self.node("Pad", [x, sizes, self.number(x, fill)], Spec(shape, x.dtype))

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        shape = np.broadcast_shapes(condition.shape, a.shape, b.shape)
        return self.node("Where", [condition, a, b], Spec(shape, a.dtype))

    def cumulative(self, kind: str, x: Value, axis: int, exclusive: bool, reverse: bool) -> Value:
        if kind != "sum":
            raise InterchangeError("ONNX has no running product")
        settings = {"exclusive": int(exclusive), "reverse": int(reverse)}
        return self.node("CumSum", [x, self._integers(axis)], Spec(x.shape, x.dtype), **settings)

    def softmax(self, kind: str, x: Value) -> Value:
        op = {"softmax": "Softmax", "log_softmax": "LogSoftmax"}[kind]
        return self.node(op, [x], Spec(x.shape, x.dtype), axis=-1)

    def _second(self, x: Value) -> Value:
        """Return x with its channels second, where ONNX has them."""
        return self.transpose(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))

    def _last(self, op: str, inputs: Sequence[Value], spec: Spec, **attributes: Any) -> Value:
        """Write a node whose result has its channels second, and bring them back to the end."""
        *rest, channels = spec.shape
        made = self.node(op, inputs, Spec((rest[0], channels, *rest[1:]), spec.dtype), **attributes)
        return self.transpose(made, (0, *range(2, made.ndim), 1))

    def conv(self, x: Value, filters: Value, geometry: Geometry, spec: Spec) -> Value:
        kernel = self.transpose(filters, (filters.ndim - 1, filters.ndim - 2, *range(filters.ndim - 2)))
        settings = {**_windows(geometry), "group": geometry.groups, "kernel_shape": list(geometry.window)}
        return self._last("Conv", [self._second(x), kernel], spec, **settings)

    def conv_input(self, x: Value, filters: Value, geometry: Geometry, spec: Spec) -> Value:
        kernel = self.transpose(filters, (filters.ndim - 1, filters.ndim - 2, *range(filters.ndim - 2)))
        left = zip(geometry.padded, geometry.reach, geometry.strides, strict=True)
        settings = {**_windows(geometry), "group": geometry.groups, "kernel_shape": list(geometry.window)}
        settings["output_padding"] = [(size - reach) % stride for size, reach, stride in left]
        return self._last("ConvTranspose", [self._second(x), kernel], spec, **settings)

    def pool(self, kind: str, x: Value, geometry: Geometry, spec: Spec) -> Value:
        op = {"max_pool": "MaxPool", "avg_pool": "AveragePool"}[kind]
        settings = {**_windows(geometry), "kernel_shape": list(geometry.window)}
        return self._last(op, [self._second(x)], spec, **settings)


def _windows(geometry: Geometry) -> dict[str, Any]:
    return {
        "strides": list(geometry.strides),
        "dilations": list(geometry.dilations),
        "pads": [*(before for before, _ in geometry.pads), *(after for _, after in geometry.pads)],
    }

"""`to_graphdef`: a traced program as a TensorFlow GraphDef, its stops as StopGradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from stopgrad.core.arrays import Shape, Spec, carries_derivative
from stopgrad.core.errors import InterchangeError
from stopgrad.graph.tracing import Traced
from stopgrad.interchange.composites import COMPOSITES
from stopgrad.interchange.exporting import Axes, Exporter, Value
from stopgrad.interchange.lowering import LOWERING
from stopgrad.interchange.protos import message_classes
from stopgrad.interchange.tensor_protos import data_type_of, tensor_of
from stopgrad.primitives.geometry import Geometry, same_pads

_PRODUCER = 1882  # the version of the graph format: TensorFlow 2.16's; older ones read it as well


def to_graphdef(traced: Traced) -> bytes:
    """Write a traced program as a TensorFlow GraphDef (binary; `tf.import_graph_def` reads it).

    A stop becomes a StopGradient, `prevent_gradient` a PreventGradient. The nodes have the names of the operations; the
    inputs are placeholders, the outputs nodes named "output", "output_1", …. Variables become constants of their
    present value. What TensorFlow lacks is written with several nodes.

    Args:
        traced: what `trace(f)(*args)` returned.

    Returns:
        The serialised message.

    Raises:
        InterchangeError: the program has operations without counterpart, such as loops, or gates that let part of a
            derivative pass; the text lists them.

    Example:
        >>> import stopgrad as sg
        >>> from stopgrad.interchange import from_graphdef, to_graphdef
        >>> data = to_graphdef(sg.trace(lambda x: sg.stop_gradient(x, name="target") * x)(3.0))
        >>> [operation.name for operation in from_graphdef(data).graph]
        ['input', 'target', 'multiply']
    """
    data: bytes = _GraphDefExporter(traced, "to_graphdef", COMPOSITES, LOWERING).export()
    return data


_REDUCTIONS = {"sum": "Sum", "mean": "Mean", "max": "Max", "min": "Min", "prod": "Prod", "any": "Any", "all": "All"}


class _GraphDefExporter(Exporter):
    """Writes nodes of a GraphDef."""

    elementwise: ClassVar[Mapping[str, str]] = {
        "absolute": "Abs",
        "add": "AddV2",
        "arccos": "Acos",
        "arccosh": "Acosh",
        "arcsin": "Asin",
        "arcsinh": "Asinh",
        "arctan": "Atan",
        "arctan2": "Atan2",
        "arctanh": "Atanh",
        "bitwise_and": "BitwiseAnd",
        "bitwise_invert": "Invert",
        "bitwise_left_shift": "LeftShift",
        "bitwise_or": "BitwiseOr",
        "bitwise_right_shift": "RightShift",
        "bitwise_xor": "BitwiseXor",
        "ceil": "Ceil",
        "conj": "Conj",
        "cos": "Cos",
        "cosh": "Cosh",
        "digamma": "Digamma",
        "divide": "RealDiv",
        "divide_no_nan": "DivNoNan",
        "equal": "Equal",
        "erf": "Erf",
        "erfc": "Erfc",
        "erfinv": "Erfinv",
        "exp": "Exp",
        "expm1": "Expm1",
        "floor": "Floor",
        "floor_divide": "FloorDiv",
        "fmod": "TruncateMod",
        "gammaln": "Lgamma",
        "greater": "Greater",
        "greater_equal": "GreaterEqual",
        "isfinite": "IsFinite",
        "isinf": "IsInf",
        "isnan": "IsNan",
        "less": "Less",
        "less_equal": "LessEqual",
        "log": "Log",
        "log1p": "Log1p",
        "logical_and": "LogicalAnd",
        "logical_not": "LogicalNot",
        "logical_or": "LogicalOr",
        "maximum": "Maximum",
        "minimum": "Minimum",
        "multiply": "Mul",
        "multiply_no_nan": "MulNoNan",
        "negative": "Neg",
        "not_equal": "NotEqual",
        "power": "Pow",
        "reciprocal": "Reciprocal",
        "relu": "Relu",
        "relu6": "Relu6",
        "remainder": "FloorMod",
        "rint": "Rint",
        "rsqrt": "Rsqrt",
        "sigmoid": "Sigmoid",
        "sign": "Sign",
        "sin": "Sin",
        "sinh": "Sinh",
        "softplus": "Softplus",
        "sqrt": "Sqrt",
        "square": "Square",
        "squared_difference": "SquaredDifference",
        "subtract": "Sub",
        "tan": "Tan",
        "tanh": "Tanh",
        "xlog1py": "Xlog1py",
        "xlogy": "Xlogy",
    }

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._graph = message_classes()["GraphDef"]()
        self._graph.versions.producer = _PRODUCER

    def node(self, op: str, inputs: Sequence[Value], spec: Spec, **attributes: Any) -> Value:
        attributes = {"T": np.dtype(inputs[0].dtype), **attributes}
        if op.startswith("Logical"):
            del attributes["T"]
        return self._add(self.inner(op), op, inputs, spec, attributes)

    def _add(self, name: str, op: str, inputs: Sequence[Value], spec: Spec, attributes: dict[str, Any]) -> Value:
        node = self._graph.node.add(name=name, op=op, input=[one.name for one in inputs])
        for key, value in attributes.items():
            _set(node.attr[key], value)
        self.last = name
        return Value(name, tuple(spec.shape), spec.dtype)

    def renamed(self, value: Value, name: str) -> Value:
        self._graph.node[-1].name = name
        return value._replace(name=name)

    def placeholder(self, name: str, spec: Spec) -> Value:
        return self._add(name, "Placeholder", (), spec, {"dtype": np.dtype(spec.dtype), "shape": spec.shape})

    def output(self, name: str, value: Value) -> None:
        self._add(name, "Identity", [value], Spec(value.shape, value.dtype), {"T": np.dtype(value.dtype)})

    def finished(self) -> bytes:
        data: bytes = self._graph.SerializeToString(deterministic=True)
        return data

    def constant(self, array: np.ndarray, name: str = "constant") -> Value:
        attributes = {"dtype": array.dtype, "value": tensor_of(array)}
        return self._add(self.inner(name), "Const", (), Spec(array.shape, array.dtype), attributes)

    def _integers(self, numbers: Any) -> Value:
        if np.max(numbers, initial=0) > 2**31 - 1:
            raise InterchangeError(f"sizes beyond 32 bits: {numbers}")
        return self.constant(np.asarray(numbers, np.int32))

    def gate(self, kind: str, x: Value, label: str | None) -> Value:
        if kind == "prevent_gradient":
            return self.node("PreventGradient", [x], Spec(x.shape, x.dtype), message=label or "")
        attributes = {"T": np.dtype(x.dtype)}
        if label is None:
            return self._add(self.inner("StopGradient"), "StopGradient", [x], Spec(x.shape, x.dtype), attributes)
        made = self._add(
            self.unique(label), "StopGradient", [x], Spec(x.shape, x.dtype), {**attributes, "_stop_name": label}
        )
        self.last = ""  # it has its name
        return made

    def cast(self, x: Value, dtype: Any) -> Value:
        if np.dtype(x.dtype) == np.dtype(dtype):
            return x
        return self._add(
            self.inner("Cast"),
            "Cast",
            [x],
            Spec(x.shape, np.dtype(dtype)),
            {"SrcT": np.dtype(x.dtype), "DstT": np.dtype(dtype)},
        )

    def reshape(self, x: Value, shape: Shape) -> Value:
        if x.shape == tuple(shape):
            return x
        return self.node("Reshape", [x, self._integers(shape)], Spec(shape, x.dtype))

    def transpose(self, x: Value, axes: Axes) -> Value:
        if tuple(axes) == tuple(range(x.ndim)):
            return x
        return self.node("Transpose", [x, self._integers(axes)], Spec(tuple(x.shape[i] for i in axes), x.dtype))

    def broadcast(self, x: Value, shape: Shape) -> Value:
        if x.shape == tuple(shape):
            return x
        return self.node("BroadcastTo", [x, self._integers(shape)], Spec(shape, x.dtype))

    def reduce(self, kind: str, x: Value, axes: Axes, keepdims: bool) -> Value:
        shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes)
        inputs = [x, self.constant(np.asarray(axes, np.int32))]
        attributes: dict[str, Any] = {"T": np.dtype(x.dtype), "keep_dims": keepdims}
        if kind in ("any", "all"):
            del attributes["T"]
        return self._add(self.inner(kind), _REDUCTIONS[kind], inputs, Spec(shape, x.dtype), attributes)

    def arg(self, kind: str, x: Value, axis: int) -> Value:
        shape = x.shape[:axis] + x.shape[axis + 1 :]
        op = {"argmax": "ArgMax", "argmin": "ArgMin"}[kind]
        return self.node(op, [x, self._integers(axis)], Spec(shape, np.dtype(np.int64)), output_type=np.dtype(np.int64))

    def matmul(self, a: Value, b: Value) -> Value:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        spec = Spec((*batch, a.shape[-2], b.shape[-1]), a.dtype)
        return self.node("MatMul" if a.ndim == b.ndim == 2 else "BatchMatMulV2", [a, b], spec)

    def einsum(self, equation: str, a: Value, b: Value, shape: Shape) -> Value:
        return self.node("Einsum", [a, b], Spec(shape, a.dtype), equation=equation, N=2)

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        shape = list(parts[0].shape)
        shape[axis] = sum(one.shape[axis] for one in parts)
        if len(parts) == 1:
            return parts[0]
        inputs = [*parts, self._integers(axis)]
        return self.node("ConcatV2", inputs, Spec(tuple(shape), parts[0].dtype), N=len(parts))

    def cut(self, x: Value, ranges: Sequence[range]) -> Value:
        if all(one == range(n) for one, n in zip(ranges, x.shape, strict=True)):
            return x
        backwards = sum(1 << i for i, one in enumerate(ranges) if one.stop < 0)  # to before the first entry
        inputs = [x, *(self._integers([getattr(one, key) for one in ranges]) for key in ("start", "stop", "step"))]
        spec = Spec(tuple(map(len, ranges)), x.dtype)
        return self.node("StridedSlice", inputs, spec, end_mask=backwards, Index=np.dtype(np.int32))

    def gather(self, x: Value, indices: Value, axis: int) -> Value:
        spec = Spec((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
        attributes = {"Tparams": np.dtype(x.dtype), "Tindices": np.dtype(indices.dtype), "Taxis": np.dtype(np.int32)}
        return self._add(self.inner("Gather"), "GatherV2", [x, indices, self._integers(axis)], spec, attributes)

    def pad(self, x: Value, widths: Sequence[tuple[int, int]], fill: float) -> Value:
        if not any(map(any, widths)):
            return x
        shape = tuple(before + n + after for n, (before, after) in zip(x.shape, widths, strict=True))
        sizes = self.constant(np.asarray(widths, np.int32).reshape(-1, 2))
        return self.node("PadV2", [x, sizes, self.number(x, fill)], Spec(shape, x.dtype))

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        shape = np.broadcast_shapes(condition.shape, a.shape, b.shape)
        return self.node("SelectV2", [condition, a, b], Spec(shape, a.dtype), T=np.dtype(a.dtype))

    def cumulative(self, kind: str, x: Value, axis: int, exclusive: bool, reverse: bool) -> Value:
        op = {"sum": "Cumsum", "prod": "Cumprod"}[kind]
        spec = Spec(x.shape, x.dtype)
        return self.node(op, [x, self._integers(axis)], spec, exclusive=exclusive, reverse=reverse)

    def softmax(self, kind: str, x: Value) -> Value:
        if not x.ndim:
            raise InterchangeError("a softmax of a number")
        return self.node({"softmax": "Softmax", "log_softmax": "LogSoftmax"}[kind], [x], Spec(x.shape, x.dtype))

    def conv(self, x: Value, filters: Value, geometry: Geometry, spec: Spec) -> Value:
        kind, x = self._bordered(x, geometry)
        *window, _, features = filters.shape
        attributes = {"padding": kind, "strides": _around(geometry.strides), "dilations": _around(geometry.dilations)}
        if len(window) == 1:  # TensorFlow has no convolution over one axis
            x, filters = self.reshape(x, _flat(x.shape)), self.reshape(filters, (1, *filters.shape))
            attributes |= {"strides": [1, geometry.strides[0], geometry.strides[0], 1]}
            attributes |= {"dilations": [1, 1, geometry.dilations[0], 1]}
            window = [1, *window]
        flat = Spec((*x.shape[:-3], 1, *spec.shape[1:]), spec.dtype) if len(geometry.size) == 1 else spec
        if len(window) > 3:
            raise InterchangeError(f"a convolution over {len(window)} axes")
        if geometry.groups == x.shape[-1] and geometry.groups > 1 and len(window) == 2:
            filters = self.reshape(filters, (*window, geometry.groups, features // geometry.groups))
            made = self.node("DepthwiseConv2dNative", [x, filters], flat, **attributes)
        else:
            op = "Conv3D" if len(window) == 3 else "Conv2D"
            made = self.node(op, [x, filters], flat, **attributes)
        return self.reshape(made, spec.shape)

    def conv_input(self, x: Value, filters: Value, geometry: Geometry, spec: Spec) -> Value:
        if len(geometry.size) != 2 or geometry.groups != 1:
            raise InterchangeError("a transposed convolution over other than two axes, or in groups")
        padded = (spec.shape[0], *geometry.padded, spec.shape[-1])
        attributes = {
            "padding": "VALID",
            "strides": _around(geometry.strides),
            "dilations": _around(geometry.dilations),
        }
        inputs = [self.constant(np.asarray(padded, np.int32)), filters, x]
        made = self.node("Conv2DBackpropInput", inputs, Spec(padded, spec.dtype), T=np.dtype(x.dtype), **attributes)
        inside = [range(before, before + n) for n, (before, _) in zip(geometry.size, geometry.pads, strict=True)]
        return self.cut(made, [range(padded[0]), *inside, range(padded[-1])])

    def pool(self, kind: str, x: Value, geometry: Geometry, spec: Spec) -> Value:
        if len(geometry.size) > 2 or any(one != 1 for one in geometry.dilations):
            raise InterchangeError("a pool over more than two axes, or with dilations")
        lowest = -np.inf if carries_derivative(x.dtype) else float(np.iinfo(x.dtype).min)
        padding, x = self._bordered(x, geometry, lowest if kind == "max_pool" else None)
        window, strides = geometry.window, geometry.strides
        shape = spec.shape
        if len(window) == 1:
            x, window, strides = self.reshape(x, _flat(x.shape)), (1, *window), (1, *strides)
            shape = _flat(shape)
        op = {"max_pool": "MaxPool", "avg_pool": "AvgPool"}[kind]
        attributes = {"ksize": _around(window), "strides": _around(strides), "padding": padding}
        return self.reshape(self.node(op, [x], Spec(shape, x.dtype), **attributes), spec.shape)

    def _bordered(self, x: Value, geometry: Geometry, fill: float | None = 0.0) -> tuple[str, Value]:
        """Return the kind of padding, and x, with its border if there is no kind for it."""
        sizes = zip(geometry.size, geometry.reach, geometry.strides, strict=True)
        if not any(map(any, geometry.pads)):
            return "VALID", x
        if geometry.pads == tuple(same_pads(*one) for one in sizes):
            return "SAME", x
        if fill is None:
            raise InterchangeError(f"means over windows with a border of {geometry.pads}")
        return "VALID", self.pad(x, ((0, 0), *geometry.pads, (0, 0)), fill)


def _around(numbers: Sequence[int]) -> list[int]:
    return [1, *numbers, 1]


def _flat(shape: Shape) -> Shape:
    """Return the shape of (batch, length, channels) as one of images of one row."""
    return (shape[0], 1, *shape[1:])


def _set(attribute: Any, value: Any) -> None:
    """Set an attribute by the type of its value."""
    if isinstance(value, bool):
        attribute.b = value
    elif isinstance(value, int):
        attribute.i = value
    elif isinstance(value, str):
        attribute.s = value.encode()
    elif isinstance(value, np.dtype):
        attribute.type = data_type_of(value)
    elif isinstance(value, tuple):
        attribute.shape.SetInParent()
        for size in value:
            attribute.shape.dim.add(size=size)
    elif isinstance(value, list):
        attribute.list.i.extend(value)
    else:
        attribute.tensor.CopyFrom(value)

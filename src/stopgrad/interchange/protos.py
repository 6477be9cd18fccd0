"""TensorFlow's graph format as Protocol Buffers messages, declared here so that TensorFlow need not be installed.

Only the fields that are read or written are declared; others survive as unknown fields. Names and numbers are those of
tensorflow/core/framework/{graph,node_def,attr_value,tensor,tensor_shape,types,versions}.proto and
tensorflow/core/protobuf/{meta_graph,saved_model}.proto, which are frozen: TensorFlow promises to read old files.
"""

from __future__ import annotations

import functools
from typing import Any

from stopgrad.core.lazy import protobuf

# Name, number and type of each field; "*" a list, "|" an alternative of the one `value` an attribute has,
# "{}" a map from strings.
_MESSAGES = {
    "TensorShapeProto.Dim": "size 1 int64, name 2 string",
    "TensorShapeProto": "dim 2 *TensorShapeProto.Dim, unknown_rank 3 bool",
    "TensorProto": (
        "dtype 1 DataType, tensor_shape 2 TensorShapeProto, version_number 3 int32, tensor_content 4 bytes, "
        "float_val 5 *float, double_val 6 *double, int_val 7 *int32, string_val 8 *bytes, scomplex_val 9 *float, "
        "int64_val 10 *int64, bool_val 11 *bool, dcomplex_val 12 *double, half_val 13 *int32, uint32_val 16 *uint32, "
        "uint64_val 17 *uint64"
    ),
    "NameAttrList": "name 1 string, attr 2 {}AttrValue",
    "AttrValue.ListValue": (
        "s 2 *bytes, i 3 *int64, f 4 *float, b 5 *bool, type 6 *DataType, shape 7 *TensorShapeProto, "
        "tensor 8 *TensorProto, func 9 *NameAttrList"
    ),
    "AttrValue": (
        "list 1 |AttrValue.ListValue, s 2 |bytes, i 3 |int64, f 4 |float, b 5 |bool, type 6 |DataType, "
        "shape 7 |TensorShapeProto, tensor 8 |TensorProto, placeholder 9 |string, func 10 |NameAttrList"
    ),
    "NodeDef": "name 1 string, op 2 string, input 3 *string, device 4 string, attr 5 {}AttrValue",
    "VersionDef": "producer 1 int32, min_consumer 2 int32, bad_consumers 3 *int32",
    "GraphDef": "node 1 *NodeDef, version 3 int32, versions 4 VersionDef",
    "TensorInfo": "name 1 string, dtype 2 DataType, tensor_shape 3 TensorShapeProto",
    "SignatureDef": "inputs 1 {}TensorInfo, outputs 2 {}TensorInfo, method_name 3 string",
    "MetaGraphDef": "graph_def 2 GraphDef, signature_def 5 {}SignatureDef",
    "SavedModel": "saved_model_schema_version 1 int64, meta_graphs 2 *MetaGraphDef",
}

DATA_TYPES = {
    "float32": ("DT_FLOAT", 1),
    "float64": ("DT_DOUBLE", 2),
    "int32": ("DT_INT32", 3),
    "uint8": ("DT_UINT8", 4),
    "int16": ("DT_INT16", 5),
    "int8": ("DT_INT8", 6),
    "string": ("DT_STRING", 7),
    "complex64": ("DT_COMPLEX64", 8),
    "int64": ("DT_INT64", 9),
    "bool": ("DT_BOOL", 10),
    "bfloat16": ("DT_BFLOAT16", 14),
    "uint16": ("DT_UINT16", 17),
    "complex128": ("DT_COMPLEX128", 18),
    "float16": ("DT_HALF", 19),
    "resource": ("DT_RESOURCE", 20),
    "uint32": ("DT_UINT32", 22),
    "uint64": ("DT_UINT64", 23),
}
"""By dtype the name and number of TensorFlow's data types."""

_PACKAGE = "stopgrad.tensorflow"  # a package of its own: TensorFlow, if loaded, has messages under its own


@functools.cache
def message_classes() -> dict[str, Any]:
    """Return the classes of the messages, by name."""
    parts = protobuf()
    file = parts.descriptor_pb2.FileDescriptorProto(name="stopgrad/graph.proto", package=_PACKAGE, syntax="proto3")
    types = file.enum_type.add(name="DataType")
    types.value.add(name="DT_INVALID", number=0)
    for name, number in DATA_TYPES.values():
        types.value.add(name=name, number=number)
    declared: dict[str, Any] = {}
    for name, fields in sorted(_MESSAGES.items(), key=lambda one: one[0].count(".")):
        outer, _, own = name.rpartition(".")
        message = declared[outer].nested_type.add(name=own) if outer else file.message_type.add(name=own)
        declared[name] = message
        for field in fields.split(", "):
            _declare(parts.descriptor_pb2.FieldDescriptorProto, message, name, *field.split(" "))
    pool = parts.descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: parts.message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


def _declare(kinds: Any, message: Any, path: str, name: str, number: str, type_text: str) -> None:
    field = message.field.add(name=name, number=int(number), label=kinds.LABEL_OPTIONAL)
    if type_text.startswith("|"):
        if not message.oneof_decl:
            message.oneof_decl.add(name="value")
        field.oneof_index = 0
    if type_text.startswith("*"):
        field.label = kinds.LABEL_REPEATED
    if type_text.startswith("{}"):
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _declare(kinds, entry, "", "key", "1", "string")
        _declare(kinds, entry, "", "value", "2", type_text[2:])
        field.label, field.type = kinds.LABEL_REPEATED, kinds.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{path}.{entry.name}"
        return
    plain = type_text.lstrip("*|")
    if plain == "DataType":
        field.type, field.type_name = kinds.TYPE_ENUM, f".{_PACKAGE}.DataType"
    elif plain in _MESSAGES:
        field.type, field.type_name = kinds.TYPE_MESSAGE, f".{_PACKAGE}.{plain}"
    else:
        field.type = getattr(kinds, f"TYPE_{plain.upper()}")

"""Graphs of other systems: TensorFlow's GraphDefs and ONNX models, read and written, their stops kept."""

from stopgrad.interchange.onnx_export import to_onnx
from stopgrad.interchange.onnx_import import from_onnx
from stopgrad.interchange.tf_export import to_graphdef
from stopgrad.interchange.tf_import import from_graphdef

__all__ = ["from_graphdef", "from_onnx", "to_graphdef", "to_onnx"]

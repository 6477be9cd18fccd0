"""Graphs of other systems: TensorFlow's GraphDefs and ONNX models, read and written, their stops kept."""

from stopgrad.interchange.tf_export import to_graphdef
from stopgrad.interchange.tf_import import from_graphdef

__all__ = ["from_graphdef", "to_graphdef"]

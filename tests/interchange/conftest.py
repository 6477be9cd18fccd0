"""The script that makes the stored graphs needs TensorFlow, and is no test."""

collect_ignore = ["make_graphdefs.py"]

"""Passes over the record: which nodes lie on a path, and cotangents and tangents along it."""

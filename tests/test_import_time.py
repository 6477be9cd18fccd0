"""`import stopgrad` stays light: heavy libraries load when something needs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("scipy", "jax", "torch", "ml_dtypes", "rich", "typer", "opt_einsum", "array_api_compat")

LIST_MODULES = "import sys; before = set(sys.modules); {}; print(*sorted(set(sys.modules) - before))"


def modules_loaded_by(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter loads for a statement."""
    command = [sys.executable, "-c", LIST_MODULES.format(statement)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("statement", ["import stopgrad", "import stopgrad.tf"])
def test_import_loads_no_heavy_library(statement: str) -> None:
    loaded = modules_loaded_by(statement)
    assert "numpy" in loaded, "the statement must have run"
    assert not loaded & set(HEAVY)

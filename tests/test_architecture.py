"""The shape of the code: who imports whom, where, how long files are, and that what users call is documented.

docs/architecture.md shows the layers. A layer imports those before it, never itself from above, so there are no cycles.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import stopgrad as sg

SOURCE = Path(sg.__file__).parent
MODULES = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}

# From the bottom up; layers on one line stand beside each other and do not import one another.
LAYERS = (
    ("core",),
    ("primitives",),
    ("sweeps",),
    ("gates",),
    ("batching",),
    ("transforms",),
    ("graph",),
    ("linalg", "random", "special", "control"),
    ("nn", "numpy"),
    ("train", "check", "audit"),
    ("interchange",),
    ("tf",),
    ("cli",),
)
RANK = {layer: rank for rank, layers in enumerate(LAYERS) for layer in layers}
# `import stopgrad` gathers what users call, and may take it from any layer below tf.
GATHERS = {"__init__.py": RANK["tf"]}

# The few places that import inside a function, each because what it imports is heavy and rarely needed.
LAZY = {
    "core/arrays.py": {"array_api_compat"},
    "core/lazy.py": {"scipy", "opt_einsum", "ml_dtypes", "safetensors", "google", "onnx"},
}

MAX_LINES = 600


class Import(NamedTuple):
    """One import statement."""

    module: str
    line: int
    inside_function: bool


def imports_of(tree: ast.Module) -> Iterator[Import]:
    """Yield what a module imports at run time; imports for the type checker only do not count."""
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, inside = pending.pop()
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            # One a name, since `from stopgrad import nn` imports a module.
            yield from (Import(f"{node.module}.{alias.name}", node.lineno, inside) for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        pending += [(child, inside) for child in ast.iter_child_nodes(node)]


def layer_of(module: str) -> str | None:
    """Return the layer of `stopgrad.layer.…`, `None` for the package itself and for other libraries."""
    parts = module.split(".")
    return parts[1] if parts[0] == "stopgrad" and len(parts) > 1 else None


def home(name: str) -> str:
    """Return the layer a file belongs to."""
    return name.partition("/")[0].removesuffix(".py")


def violations(name: str, tree: ast.Module) -> Iterator[str]:
    """Yield what a file imports that it must not."""
    own = home(name)
    for module, line, inside_function in imports_of(tree):
        where = f"{name}:{line}"
        if inside_function:
            if module.partition(".")[0] not in LAZY.get(name, set()):
                yield f"{where} imports {module} inside a function; put it on top, or in core/lazy.py if it is heavy"
            continue
        layer = layer_of(module)
        if module == "stopgrad" and own != "cli":
            yield f"{where} imports the package from inside it; import the module that defines what you need"
        if layer is None or layer == own:
            continue
        if name in GATHERS:
            if RANK[layer] > GATHERS[name]:
                yield f"{where} imports {layer}, which stands above the package's own names"
        elif RANK[layer] >= RANK[own]:
            yield f"{where}: {own} imports {layer}, which does not stand below it"


def test_every_file_belongs_to_a_layer() -> None:
    assert {home(name) for name in MODULES} <= {*RANK, "__init__", "__main__"}


def test_the_picture_in_the_documentation_shows_the_layers() -> None:
    text = (Path(__file__).parent.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = text.partition("```text\n")[2].partition("```")[0]
    shown = {word: rank for rank, line in enumerate(picture.splitlines()[::-1]) for word in line[:40].split()}
    present = [tuple(one for one in layers if one in {home(name) for name in MODULES}) for layers in LAYERS]
    assert shown == {layer: rank for rank, layers in enumerate(filter(None, present)) for layer in layers}


def test_imports_run_downwards_and_stand_on_top() -> None:
    found = [one for name, tree in TREES.items() if name != "__main__.py" for one in violations(name, tree)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("core/a.py", "import stopgrad.tf", "core imports tf"),
        ("gates/a.py", "from stopgrad.transforms.grad import grad", "gates imports transforms"),
        ("tf/a.py", "from stopgrad import cli", "tf imports cli"),
        ("nn/a.py", "def f():\n    import scipy", "inside a function"),
        ("train/a.py", "import stopgrad", "imports the package"),
    ],
)
def test_the_check_of_imports_finds(name: str, text: str, complaint: str) -> None:
    found = list(violations(name, ast.parse(text)))
    assert len(found) == 1
    assert complaint in found[0]


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Within a layer too: repeatedly take away the modules that import nothing that is left."""
    known = {module_name(name): name for name in MODULES}
    needs = {
        module: {resolve(one.module, known) for one in imports_of(TREES[name])} - {None, module}
        for module, name in known.items()
    }
    left = set(needs)
    while removable := {module for module in left if not needs[module] & left}:
        left -= removable
    assert not left, f"among these there is a circle: {sorted(left)}"


def module_name(name: str) -> str:
    """Return the module a file holds: stopgrad.core for core/__init__.py."""
    return f"stopgrad/{name}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def resolve(module: str, known: dict[str, str]) -> str | None:
    """Return the module of ours that an import names, or `None`."""
    while module and module not in known:
        module = module.rpartition(".")[0]
    return module or None


@pytest.mark.parametrize("name", MODULES)
def test_files_are_short_and_say_what_they_are(name: str) -> None:
    text = MODULES[name].read_text(encoding="utf-8")
    assert text.count("\n") <= MAX_LINES
    assert ast.get_docstring(TREES[name]), "start with what the file is for"


def test_every_folder_is_a_package() -> None:
    folders = {path.parent for path in MODULES.values()}
    assert not [folder for folder in folders if not (folder / "__init__.py").exists()]


def public_names() -> list[str]:
    """Return the functions and classes users get from `import stopgrad`."""
    return [name for name in sg.__all__ if callable(getattr(sg, name))]


@pytest.mark.parametrize("name", public_names())
def test_what_users_call_is_documented_by_example(name: str) -> None:
    documentation = inspect.getdoc(getattr(sg, name)) or ""
    assert documentation, f"stopgrad.{name} has no docstring"
    if other := re.search(r"(?:[Ss]ame as|[Ss]ee) `(\w+)`", documentation.partition("\n")[0]):
        documentation = inspect.getdoc(getattr(sg, other[1])) or ""  # a short one that sends to its sibling
    assert "Example:" in documentation, f"the docstring of stopgrad.{name} has no example"
    assert ">>> " in documentation, f"the example of stopgrad.{name} cannot be run"

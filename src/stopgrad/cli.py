"""The command line: `stopgrad demo` runs the examples, each a use of stopping gradients on real data.

The examples are programs of their own and no part of the library. A wheel puts them beside the package and not into it,
because reports name the line of a gate in the user's code, and what lies inside is the library's. In a checkout they
are in `examples/`. What they need beyond the library is installed by `pip install "stopgrad[examples]"`.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, NamedTuple, NoReturn

import typer
from rich.console import Console
from rich.table import Table

import stopgrad

_HERE = Path(__file__).resolve().parent
FOLDERS = (_HERE.parent / "stopgrad_examples", _HERE.parents[1] / "examples")
"""Where the examples may be: in a wheel, in a checkout."""

EXTRAS = {"gymnasium": "gymnasium", "matplotlib": "matplotlib", "sklearn": "scikit-learn"}
"""What examples import beyond what the library needs, and what it is called where packages are installed from."""


class Demo(NamedTuple):
    """An example: the file it is in, and what it shows."""

    file: str
    shows: str


DEMOS = {
    "dqn": Demo("dqn.py", "Q-learning on CartPole with a stopped target network"),
    "em": Demo("em_mixture.py", "EM on iris: the responsibilities are stopped"),
    "rbm": Demo("rbm.py", "a Boltzmann machine on digits: its samples are stopped"),
    "adversarial": Demo("adversarial.py", "adversarial training on digits: the attack is stopped"),
    "simsiam": Demo("simsiam.py", "a Siamese network on digits: stop or collapse"),
    "vq": Demo("vqvae.py", "a VQ autoencoder on digits: straight through a choice"),
}

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_show_locals=False)


def main() -> None:
    """Run the command line."""
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stopgrad {stopgrad.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and end.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Automatic differentiation in which where gradients stop is first-class."""


@app.command()
def demo(
    name: Annotated[str | None, typer.Argument(help="Which example; without one, list them.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the plot.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
) -> None:
    """Run an example, a use of stopping gradients on real data, or list them."""
    if name is None:
        _list_demos()
    elif name not in DEMOS:
        raise typer.BadParameter(f"there is no example {name!r}; there are {', '.join(DEMOS)}", param_hint="NAME")
    else:
        _load(name).main(out=out, seed=seed)


def _list_demos() -> None:
    table = Table("stopgrad demo …", "what it shows")
    for name, one in DEMOS.items():
        table.add_row(name, one.shows)
    Console().print(table)


def _load(name: str) -> ModuleType:
    """Return an example as a module, or end with one line that says what is missing."""
    file = DEMOS[name].file
    path = next((folder / file for folder in FOLDERS if (folder / file).exists()), None)
    specification = None if path is None else importlib.util.spec_from_file_location(f"stopgrad_demo_{name}", path)
    if specification is None or specification.loader is None:
        _fail(f"the example {file} is not installed; run this in a checkout of stopgrad, or install a wheel")
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module
    try:
        specification.loader.exec_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        _fail(f'this example needs {EXTRAS[package]}; install it with: pip install "stopgrad[examples]"')
    return module


def _fail(message: str) -> NoReturn:
    typer.echo(f"stopgrad: {message}", err=True)
    raise typer.Exit(1)

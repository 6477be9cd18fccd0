"""The command line lists and runs the examples, and says in one line what is missing."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

import stopgrad
from stopgrad import cli

ROOT_EXAMPLES = cli.FOLDERS[1]


def run(*arguments: str):
    return CliRunner().invoke(cli.app, list(arguments))


def test_version():
    assert run("--version").output.strip() == f"stopgrad {stopgrad.__version__}"


def test_demo_lists_all_examples():
    result = run("demo")
    assert result.exit_code == 0
    for name, one in cli.DEMOS.items():
        assert any(name in line and one.shows in line for line in result.output.splitlines())


def test_every_example_can_be_run_by_name():
    assert {one.file for one in cli.DEMOS.values()} == {
        path.name for path in ROOT_EXAMPLES.glob("*.py") if path.name != "__init__.py"
    }


def test_demo_runs_an_example(tmp_path):
    result = run("demo", "em", "--out", str(tmp_path), "--seed", "4")
    assert result.exit_code == 0
    assert "The log-likelihood rose in each of" in result.output
    assert (tmp_path / "em_mixture.png").exists()


def test_an_unknown_example_is_answered_with_the_known_ones():
    result = run("demo", "sgd")
    assert result.exit_code == 2
    assert "there is no example 'sgd'" in result.output
    assert "dqn" in result.output


@pytest.mark.parametrize("package", cli.EXTRAS)
def test_a_missing_package_is_named_in_one_line(package, monkeypatch):
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    result = run("demo", "em" if package != "gymnasium" else "dqn")
    assert result.exit_code == 1
    assert result.output == (
        f'stopgrad: this example needs {cli.EXTRAS[package]}; install it with: pip install "stopgrad[examples]"\n'
    )


def test_missing_examples_are_said_to_be_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(cli, "FOLDERS", (tmp_path,))
    result = run("demo", "em")
    assert result.exit_code == 1
    assert "the example em_mixture.py is not installed" in result.output

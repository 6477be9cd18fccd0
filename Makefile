# `make test` and `make demo` need Python 3.11 or newer and nothing else: they make .venv themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
BENCH ?=

.PHONY: help test demo lint types format bench clean

help:
	@echo "make demo    install, then train a DQN whose target network is stopped"
	@echo "make test    install, then everything that must hold: lint, types, tests, examples in the documentation"
	@echo "make lint | types | format | bench | clean"

test: lint types
	$(BIN)/python -m pytest $(PYTEST_ARGS)

demo: $(VENV)/installed-examples
	$(BIN)/stopgrad demo dqn

lint: $(VENV)/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/installed-dev
	$(BIN)/mypy

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/installed-dev
	$(BIN)/python -m bench $(BENCH)

clean:
	rm -rf $(VENV) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps say what is installed; they are made anew when pyproject.toml changes.
$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "stopgrad needs Python 3.11 or newer; say which: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/installed-%: $(VENV)/created pyproject.toml
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[$*]'
	@touch $@

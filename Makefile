# make demo, make test: all the set-up, then the work. make test-thorough: the tests that take minutes more.
# make lint, make typecheck: the checks of a change.
# ARGS goes to pytest: make test ARGS='-k metadata'.

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
STAGE := build/typecheck
PACKAGES := ir compiler runtime tools
# The first Python that is new enough; PYTHON=... names another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
ARGS ?=

.PHONY: demo test test-thorough lint format typecheck clean

demo: $(INSTALLED)
	$(BIN)/python -m qsmla.tools.demo

test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 -m "not thorough" $(ARGS)

test-thorough: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 -m thorough $(ARGS)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# mypy wants the packages where their names say, so that layout is staged with links.
typecheck: $(INSTALLED)
	rm -rf $(STAGE)
	mkdir -p $(STAGE)/qsmla
	ln -s $(addprefix $(CURDIR)/,$(PACKAGES) $(wildcard qsmla/*)) $(STAGE)/qsmla/
	MYPYPATH=$(STAGE) $(BIN)/mypy -p qsmla

$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed (make PYTHON=/path/to/python)" >&2; exit 1; }
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV) || \
		{ echo "python3 -m venv failed; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info

PYTHON ?= python3
PIP_ARGS ?=
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint results results-check format clean

help: ## these lines
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "PYTHON=python3.12 chooses the interpreter, PIP_ARGS=... goes to pip, ARGS=... to pytest or the demo."

DEMO = digits digits-a1 digits-a2 digits-a3

demo: $(STAMP) ## real digits, clean and under three attacks: personal models against the global one
	$(BIN)/dittofl run $(DEMO) --seeds 0:3 --out runs/demo --resume --report runs/demo/report.html $(ARGS)

test: lint ## everything CI asks: lint, types, tests and doctests (ARGS="-k metrics -x" for pytest)
	$(BIN)/pytest $(ARGS)

lint: $(STAMP) ## ruff and mypy, changing nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

results: $(STAMP) ## docs/reproduction.md from results/
	$(BIN)/python -m dittofl.reproduce.document results docs/reproduction.md

results-check: $(STAMP) ## whether docs/reproduction.md follows from results/
	$(BIN)/python -m dittofl.reproduce.document results docs/reproduction.md --check

format: $(STAMP) ## ruff's format and its safe fixes
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove the environment, caches and build products
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The build backend comes first and pinned, as an isolated build would fetch one past the constraints. In its `compat`
# mode a script that lies beside this folder finds the package in it; else Python takes the folder itself for one.
$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) setuptools
	$(PIP_INSTALL) --no-build-isolation --config-settings editable_mode=compat -e '.[dev]'
	@touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not on the PATH: install Python 3.11 or later, or name one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "dittofl needs Python 3.11 or later, got $$($(PYTHON) --version 2>&1): name another with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module: install it (the Debian package python3-venv) and run make again." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One word each. PYTHON=python3.12 picks an interpreter; ARGS="..." goes to the program that is run.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest -q
NODE_DIR := tests/interop/node

.PHONY: help run install test check interop proof bench

help: ## Show these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-9s%s\n", $$1, $$2}' Makefile

run: .venv/.runtime ## Install what serving needs, then serve (ARGS="--data DIR ...")
	@$(BIN)/strongroom serve $(ARGS)

install: .venv/.dev ## Install the project with everything its development needs

test: .venv/.dev ## Run the tests that need only Python
	$(PYTEST) tests --ignore=tests/interop --ignore=tests/proof $(ARGS)

check: .venv/.dev ## Format, lint, types, layers, style by the numbers
	$(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy
	$(BIN)/lint-imports --no-logo && $(PYTEST) tests/tidy

interop: .venv/.dev $(NODE_DIR)/node_modules/.installed ## Drive the server with other clients: Node SDKs, rclone, Celery
	$(PYTEST) tests/interop $(ARGS)

proof: .venv/.dev ## Run the long proofs (kill -9 loops, power cuts, histories)
	$(PYTEST) -s --timeout=3600 tests/proof $(ARGS)

bench: .venv/.dev ## Measure
	$(BIN)/python -m benchmarks $(ARGS)

.venv/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Strongroom needs Python 3.11 or later, and '$(PYTHON)' is not. Name one: make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { echo "'$(PYTHON) -m venv' failed. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@touch $@

.venv/.runtime: .venv/.created pyproject.toml constraints.txt
	@echo "Installing Strongroom into .venv"
	@$(PIP) --editable .
	@touch $@

.venv/.dev: .venv/.created pyproject.toml constraints.txt
	@echo "Installing Strongroom and its development tools into .venv"
	@$(PIP) --editable '.[dev]'
	@touch .venv/.runtime $@

# Without npm there is nothing to install: the tests then fail and say what is missing.
$(NODE_DIR)/node_modules/.installed: $(NODE_DIR)/package.json
	@! command -v npm >/dev/null || npm --prefix $(NODE_DIR) install --no-audit --no-fund --loglevel=error
	@mkdir -p $(@D) && touch $@

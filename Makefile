# One word each. PYTHON=python3.12 picks an interpreter, VENV=.venv-3.12 where it is installed;
# ARGS="..." goes to the program that is run. `make test ARGS=tests/auth` tests one area.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest -q
# What development installs. .ci/run installs less for a second Python.
DEVELOPMENT ?= '.[dev]'
# Many tests wait, so one process more than cores; one area is quicker without any.
JOBS ?= $(if $(ARGS),0,$(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 8 ? cores + 1 : 8))))
# The folder to test, unless ARGS names what to test.
in = $(if $(filter tests/%,$(ARGS)),,$(1))
NODE_DIR := tests/interop/node
CONSOLE := console/node_modules/.installed
# The long proofs, and the tests that repeat less in `make test` (tests/effort.py).
PROOFS := tests/proof tests/interop/console tests/fuzz tests/conformance/concurrency/test_races.py tests/conformance/concurrency/test_body_histories.py \
	tests/conformance/file/test_smb_breaks.py tests/conformance/file/test_smb_histories.py \
	tests/services tests/engines/test_power_cuts.py tests/engines/test_reserve.py tests/testing/test_search.py \
	tests/durability/test_reset.py
# What `make test` leaves out: it needs other programs, takes hours, or is in `make check`.
ELSEWHERE := --ignore=tests/installed --ignore=tests/interop --ignore=tests/proof --ignore=tests/tidy
# Where the distributions are built. They carry the time of the last commit, so two builds are equal.
DIST ?= dist
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)
# The repository itself, and each folder that has a distribution of its own.
BUILT := . $(patsubst %/,%,$(dir $(wildcard distributions/*/pyproject.toml)))
# The parts of `make check`, the longest first. Each prints its output in one piece, where make can do that.
CHECKS := check-types check-tidy check-darwin check-win32 check-console check-layers check-format
WHOLE_OUTPUT := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
# What is built into a site; every page keeps its place, so that links stay as they are.
PAGES = $(wildcard *.md docs/*.md docs/*/*.md docs/*/*/*.md benchmarks/README.md console/README.md tests/README.md docs/site/*.css docs/site/*.js docs/pictures/*/*)
# Where it is set, each of the hundreds of processes that tests start would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run console screenshots install format check test coverage interop database proof bench docs dist image installed lowest $(CHECKS)

help: ## Show these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s%s\n", $$1, $$2}' Makefile

run: $(VENV)/.runtime ## Install what serving needs, then serve (ARGS="--data DIR ...")
	@$(BIN)/strongroom serve $(ARGS)

console: $(VENV)/.dev $(CONSOLE) ## Build the console's page with Node.js (the wheel ships it, so running needs no Node)
	$(BIN)/python -m tests.tidy.console_build

screenshots: $(VENV)/.dev ## Take the pictures of the console for the manual (it needs Chromium, and what `make console` built)
	$(BIN)/python -m tests.interop.console.pictures $(ARGS)

install: $(VENV)/.dev ## Install the project with everything its development needs

test: $(VENV)/.dev ## Run the tests that need only Python (ARGS=tests/auth: one area)
	$(PYTEST) $(call in,tests $(ELSEWHERE)) --numprocesses=$(JOBS) --dist=worksteal $(ARGS)

format: $(VENV)/.dev ## Format the code, and mend what the linter can mend
	$(BIN)/ruff check --quiet --fix-only . && $(BIN)/ruff format .

check: $(VENV)/.dev ## Format, lint, types, layers, style by the numbers; several at a time
	@$(MAKE) --no-print-directory --keep-going --jobs=2 $(WHOLE_OUTPUT) $(CHECKS)

check-types:
	$(BIN)/mypy

check-darwin check-win32: check-%:
	$(BIN)/mypy --platform $* --cache-dir .mypy_cache/$* src

check-tidy:
	$(PYTEST) tests/tidy

# Compares hashes with Python alone; where the page's packages are installed, it builds anew.
check-console:
	$(BIN)/python -m tests.tidy.console_build --compare

check-layers:
	$(BIN)/lint-imports --no-logo

check-format:
	$(BIN)/ruff format --check . && $(BIN)/ruff check .

coverage: $(VENV)/.dev ## Run the tests once more, and report the lines and branches that none of them runs
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q $(call in,tests $(ELSEWHERE)) --numprocesses=$(JOBS) --dist=worksteal --timeout=600 $(ARGS)
	$(BIN)/coverage combine --quiet && $(BIN)/coverage html --quiet --directory build/coverage
	$(BIN)/coverage report --skip-covered --sort=miss | tail -n 40

interop: $(VENV)/.dev $(NODE_DIR)/node_modules/.installed $(CONSOLE) ## Drive the server with other clients: Node SDKs, rclone, delta-rs, Celery
	$(PYTEST) $(call in,tests/interop) --numprocesses=$(if $(ARGS),0,2) \
		--dist=loadfile --no-loadscope-reorder $(ARGS)

database: $(VENV)/.dev ## Run a third of the conformance tests over a PostgreSQL, and some over two gateways of it
	STRONGROOM_TEST_STORE=postgres $(PYTEST) --numprocesses=2 --dist=worksteal \
		$$($(BIN)/python -m tests.conformance.parts third $$(git rev-parse HEAD))
	STRONGROOM_TEST_STORE=two-gateways $(PYTEST) --numprocesses=2 --dist=worksteal \
		$$($(BIN)/python -m tests.conformance.parts two-gateways)

proof: $(VENV)/.dev ## Run the long proofs (kill -9 loops, power cuts, histories, fuzzing)
	HYPOTHESIS_PROFILE=long $(PYTEST) -s --timeout=3600 $(call in,$(PROOFS)) $(ARGS)
	$(if $(filter tests/%,$(ARGS)),,HYPOTHESIS_PROFILE=long $(PYTEST) --timeout=3600 \
		-m hypothesis tests $(ELSEWHERE) --ignore=tests/fuzz $(ARGS))

bench: $(VENV)/.dev ## Measure
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/.docs ## Build the documentation as a site in build/site, and check its links
	@rm -rf build/pages && mkdir -p build/pages
	@tar cf - $(PAGES) | tar xf - -C build/pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --clean
	@$(BIN)/python docs/site/check.py build/site
	@echo "Open build/site/index.html"

dist: $(VENV)/.build ## Build the wheel and the sdist into dist/ (REPOSITORY=https://...: the address they name)
	@rm -f $(DIST)/strongroom*
	@for folder in $(BUILT); do \
		$(if $(SOURCE_DATE_EPOCH),SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH)) STRONGROOM_REPOSITORY='$(REPOSITORY)' \
		$(BIN)/python -m build --no-isolation --outdir $(DIST) $$folder || exit 1; done
	@cd $(DIST) && sha256sum strongroom*

installed: $(VENV)/.dev ## Build the distributions, install them into empty environments, and try them there
	$(PYTEST) $(call in,tests/installed) $(ARGS)

lowest: ## Run the tests with the lowest version of each dependency, in .venv-lowest
	@$(MAKE) --no-print-directory VENV=.venv-lowest .venv-lowest/.lowest
	@$(MAKE) --no-print-directory VENV=.venv-lowest test

image: $(VENV)/.created ## Build the container image in build/, of the wheels in dist/ if any are there (ARCH=arm64, ARGS=--lock)
	@$(BIN)/python -m deploy.image.build $(if $(ARCH),--arch $(ARCH)) $(ARGS)

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Strongroom needs Python 3.11 or later, and '$(PYTHON)' is not. Name one: make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "'$(PYTHON) -m venv' failed. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@touch $@

$(VENV)/.runtime: $(VENV)/.created pyproject.toml constraints.txt
	@echo "Installing Strongroom into $(VENV)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.created pyproject.toml constraints.txt
	@echo "Installing Strongroom and its development tools into $(VENV)"
	@$(PIP) --editable $(DEVELOPMENT)
	@touch $(VENV)/.runtime $@

$(VENV)/.build: $(VENV)/.created constraints.txt
	@$(PIP) build hatchling
	@touch $@

# On top of what the tests need, since some of that asks for newer versions; pip names these.
$(VENV)/.lowest: $(VENV)/.dev
	@echo "Installing the lowest version of each dependency into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: $$($(BIN)/python -m tests.tidy.dependencies)
	@touch $@

$(VENV)/.docs: $(VENV)/.created constraints.txt
	@echo "Installing what builds the documentation into $(VENV)"
	@$(PIP) mkdocs-material 'mkdocstrings[python]'
	@touch $@

# Without npm there is nothing to install: the tests then fail and say what is missing.
$(NODE_DIR)/node_modules/.installed: $(NODE_DIR)/package.json
	@! command -v npm >/dev/null || npm --prefix $(NODE_DIR) install --no-audit --no-fund --loglevel=error
	@mkdir -p $(@D) && touch $@

# What was locked, with its hashes; scripts of packages never run (console/.npmrc).
$(CONSOLE): console/package-lock.json
	@! command -v npm >/dev/null || npm --prefix console ci --no-audit --no-fund --loglevel=error
	@mkdir -p $(@D) && touch $@

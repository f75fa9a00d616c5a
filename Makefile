.DEFAULT_GOAL := help

# Any Python from 3.11 on; `make PYTHON=/path/to/python3.12 test` names one.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS := $(VENV)/.docs
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	--no-annotate --no-config

.PHONY: help
help: ## Show this help
	@echo "make TARGET, where TARGET is one of:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(READY) ## Make .venv with the locked dependencies and this checkout in it

.PHONY: demo
demo: $(READY) ## Submit the demo's runs, show comparisons and a failure, and write the report
	PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

.PHONY: quick
quick: lint types ## Form, types and the fast tests, for every edit
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

.PHONY: test
# On two cores the third and fourth worker use the time that tests wait for a disk, a server or a killed process.
test: $(READY) ## Run the tests
	$(BIN)/pytest -n 4 --dist worksteal

.PHONY: thorough
thorough: $(READY) ## Run the tests with many examples each, on more pages and engines (Java and Chromium, if there)
	if command -v java; then $(BIN)/python -m pip install --quiet --require-hashes -r requirements/spark.txt; fi
	if command -v chromium; then $(BIN)/python -m pip install --quiet --require-hashes -r requirements/browser.txt; fi
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/keyless.txt
	RECEIPTS_TEST_THOROUGH=1 $(BIN)/pytest -n 2 --dist worksteal

.PHONY: coverage
coverage: $(READY) ## Run the tests with lines counted, and hold the share against the floor
	$(BIN)/coverage erase
	COVERAGE_CORE=sysmon $(BIN)/coverage run -m pytest -n 4 --dist worksteal
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

.PHONY: lint
lint: $(READY) ## Check the code's form
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: types
types: $(READY) ## Check the types
	$(BIN)/mypy

.PHONY: layers
layers: $(READY) ## Check that dependencies run one way
	$(BIN)/lint-imports --no-logo

.PHONY: format
format: $(READY) ## Put the code into form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: check
check: lint types layers test ## Form, types, layers and tests

.PHONY: wheel-test
wheel-test: $(READY) ## Build sdist and wheel, and run the tests against the wheel
	.ci/wheel-test

.PHONY: bench
bench: $(READY) ## Measure speed, each figure beside a floor from the same run
	$(BIN)/python -m benchmarks

.PHONY: attack
attack: $(READY) ## Attack a server on this machine and all that reads files, and count the faults; two minutes
	$(BIN)/python -m benchmarks.attack --quick

.PHONY: docs
docs: pages site ## Write the generated pages again, and build the site

.PHONY: pages
pages: $(READY) ## Write the generated pages again
	$(BIN)/python docs/generate.py

.PHONY: site
site: $(DOCS) ## Build the site of the docs in build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

.PHONY: lock
lock: $(READY) ## Lock the dependencies again, at the newest versions that fit
	$(LOCK) --upgrade pyproject.toml --extra all --group dev -o requirements/dev.txt
	$(LOCK) --constraints requirements/dev.txt pyproject.toml --extra all --group test -o requirements/test.txt
	$(LOCK) --constraints requirements/dev.txt pyproject.toml -o requirements/runtime.txt
	$(LOCK) --upgrade --group pyproject.toml:spark -o requirements/spark.txt
	$(LOCK) --upgrade --constraints requirements/dev.txt --group pyproject.toml:browser -o requirements/browser.txt
	$(LOCK) --upgrade --constraints requirements/dev.txt --group pyproject.toml:keyless -o requirements/keyless.txt
	$(LOCK) --upgrade --constraints requirements/dev.txt --group pyproject.toml:docs -o requirements/docs.txt
	$(LOCK) --upgrade --group pyproject.toml:pip -o requirements/pip.txt

.PHONY: clean
clean: ## Remove what was built, and .venv
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*

# The stamp is younger than the lock and the project file, or the environment is brought up to them.
$(READY): requirements/dev.txt pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "No Python 3.11 or newer was found. Install one, or name it: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; \
		exit 2; \
	fi
	@if ! $(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "$(PYTHON) -m venv $(VENV)"; \
		$(PYTHON) -m venv --clear $(VENV) || { \
			echo "$(PYTHON) cannot make an environment; on Debian install python3-venv." >&2; exit 2; }; \
	fi
	@# The pip of Python 3.11 takes twice the time: it holds every file that an index names against a thousand tags.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-compile \
		-r requirements/pip.txt || echo 'A newer pip cannot be had; that of $(PYTHON) goes on.' >&2
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --no-compile \
		-r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(DOCS): $(READY) requirements/docs.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
		-r requirements/docs.txt
	@touch $@

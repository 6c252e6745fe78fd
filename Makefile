# Every target sets up what it needs, in .venv; from the second time on that takes no time.

PY := .venv/bin/python
READY := .venv/.ready
LOCK := requirements/dev.lock
UV := uv==0.13.9

# The first Python on the PATH that is new enough; looked for only when .venv is made.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,\
	$(shell $(name) -c '$(NEW_ENOUGH)' 2>/dev/null && command -v $(name))))

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format bench bench-scale docs lock

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Install the tested versions into .venv, and fetch Delta's JARs
	@$(PY) -m ranklake.session

demo: $(READY) ## Evaluate two models on a sample log, and show the numbers
	@$(PY) jobs/demo.py

test: $(READY) ## Run all tests, in two processes
	@$(PY) -m pytest --quiet -n 2 --dist loadfile

lint: $(READY) ## Check format, style and types
	@$(PY) -m ruff format --quiet --check .
	@$(PY) -m ruff check --quiet .
	@$(PY) -m mypy --no-error-summary

format: $(READY) ## Format the code, and repair what can be repaired
	@$(PY) -m ruff check --quiet --fix .
	@$(PY) -m ruff format --quiet .

bench: $(READY) ## Measure the speed against other evaluators (OPTIONS="--rows 2000000")
	@$(PY) -m benchmarks.run $(OPTIONS)

bench-scale: $(READY) ## Measure how time and memory grow, up to 1 000 M rows
	@$(PY) -m benchmarks.scale $(OPTIONS)

docs: $(READY) ## Write the reference pages from the code
	@$(PY) -m ranklake.docgen

lock: $(READY) ## Renew the tested versions
	@$(PY) -m uv pip compile pyproject.toml requirements/tested.in --extra dev \
		--universal --python-version 3.11 --upgrade --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --quiet --output-file $(LOCK)

# uv is quick; pip does the same where uv cannot be had, or does not know the local mirror.
$(READY): pyproject.toml $(LOCK)
	@test -n "$(PYTHON)" || \
		{ echo "Python: none of 3.11 or newer on the PATH; run: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "Setting up .venv; this takes a minute and 1 GB, once ..."
	@$(PYTHON) -m venv .venv
	@$(PY) -m pip install --quiet $(UV) 2>/dev/null || echo "uv cannot be had; going on with pip"
	@{ test -x .venv/bin/uv && .venv/bin/uv pip install --quiet --python $(PY) --require-hashes -r $(LOCK); } \
		|| $(PY) -m pip install --quiet --require-hashes -r $(LOCK)
	@$(PY) -m pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

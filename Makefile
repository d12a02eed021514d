# README's commands. `make demo` and `make test` set everything up by themselves; nothing is installed outside of
# .venv/ and the user's cache.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.run-stamp
DEV_STAMP := $(VENV)/.dev-stamp
WORKERS ?= 2

.PHONY: help demo test check bench schema lock report clean

help: ## this list
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

demo: $(RUN_STAMP) ## validate the demo's tasks, run the demo campaign on this machine, write its report
	@$(BIN)/trialfleet validate --repeats 1 --campaign tasks/quickstart/demo.yaml
	@$(BIN)/trialfleet run tasks/quickstart/demo.yaml

test: $(DEV_STAMP) ## the whole test suite; what the machine lacks is skipped and said (TRIALFLEET_CI=1: fails)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

check: $(DEV_STAMP) ## formatting, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: $(DEV_STAMP) ## the figures of docs/reference/figures.md, measured here, as a table
	$(BIN)/python -m tests.bench

schema: $(DEV_STAMP) ## write docs/schema/ anew from the contract
	$(BIN)/python -m trialfleet_runner.schema docs/schema

lock: $(DEV_STAMP) ## resolve requirements/ anew
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate --upgrade -q --extra all --extra build -o requirements/run.txt
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate --upgrade -q --extra all --extra build --extra dev -c requirements/run.txt -o requirements/dev.txt
	grep -A30 '^uv==' requirements/run.txt | awk 'NR>1 && !/^ /{exit} {print}' > requirements/uv.txt

clean: ## remove the environment and the demo's results (the user's cache stays: trialfleet gc --cache)
	rm -rf $(VENV) runs

$(BIN)/uv: requirements/uv.txt
	@python=""; for candidate in $${PYTHON:-} python3 python3.13 python3.12 python3.11; do \
	  if $$candidate -c 'import sys, ensurepip, venv; sys.exit(not (3,11) <= sys.version_info[:2] <= (3,13))' 2>/dev/null; then python=$$candidate; break; fi; done; \
	if [ -z "$$python" ]; then echo "trialfleet needs Python 3.11, 3.12 or 3.13 with venv (Debian: apt install python3 python3-venv), or PYTHON=/path/to/python" >&2; exit 2; fi; \
	echo "setting up $(VENV) with $$($$python --version)"; $$python -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@touch $@

$(RUN_STAMP): $(BIN)/uv requirements/run.txt pyproject.toml
	@test -e $(DEV_STAMP) || $(BIN)/uv pip sync -q --python $(BIN)/python --require-hashes requirements/run.txt
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

$(DEV_STAMP): $(BIN)/uv requirements/dev.txt pyproject.toml
	@$(BIN)/uv pip sync -q --python $(BIN)/python --require-hashes requirements/dev.txt
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@ $(RUN_STAMP)

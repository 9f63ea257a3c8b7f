# The one entry point for people and for CI. `make` alone lists what there is.

# The Python that the system comes with, if it is new enough: distributions build theirs with profile-guided
# optimization, and the server takes a tenth less CPU with it than with one that pyenv has built, say.
ifndef PYTHON
PYTHON := $(shell /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
  && echo /usr/bin/python3 || echo python3)
endif
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

# The real programs that `make test` runs; `make conformance` fetches the rest itself.
TEST_PROGRAMS := kubectl-1.24 kubectl-1.27 kubectl-1.29 kubectl-1.33 kubectl-1.36 helm-4.2 etcd-3.5 etcdctl-3.5
# What faults are tried on: members of the packaged etcd that are killed under load can lose their agreement. Takes Go.
FAULT_PROGRAMS := etcd-server-3.6 etcdutl-3.6
# Those of `make e2e`. The second take Go and minutes to build.
E2E_KUBECTL := kubectl-1.27 kubectl-1.29 kubectl-1.33 kubectl-1.36
E2E_CLIENTS := $(E2E_KUBECTL) helm-4.2 etcd-3.5
E2E_HOST ?= 1.36
E2E_PROGRAMS := etcd-server-3.6 $(foreach program,apiserver controller-manager scheduler,kube-$(program)-$(E2E_HOST))
# The releases of the members of `make members`.
MEMBERS ?= 1.36 1.34 1.32
MEMBER_PROGRAMS = $(foreach release,$(MEMBERS),kube-apiserver-$(release) kube-controller-manager-$(release) kube-scheduler-$(release))
# The peer of `make bench-compare` and of `make clients`, built the same way.
BENCH_PROGRAMS := etcd-server-3.6 kube-apiserver-1.36
# How often `make leader-test` ends the leader.
KILLS ?= 20
# Processes that run tests: more than a small machine has cores, since half of the tests wait for other programs.
WORKERS ?= 3

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Kept bytecode saves each process of the tests ten seconds of CPU, in which pytest rewrites their assertions.
unexport PYTHONDONTWRITEBYTECODE

# Installs what the locks in requirements/ name; at once when it is there already.
define install
  @$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
    || { echo "Python 3.11 or newer is needed; choose one with: make $@ PYTHON=python3.12" >&2; exit 1; }
  @$(PYTHON) -m tools.environment --venv $(VENV) $(1)
  @# Also where Python is told to write none (PYTHONDONTWRITEBYTECODE): without it each start takes twice as long.
  @$(BIN)/python -m compileall -q src
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## List these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install everything that development needs into .venv, exactly as locked
	$(call install,development)

.PHONY: runtime
runtime: ## Install only what the server needs into .venv
	$(call install,runtime)

.PHONY: run
run: runtime ## Start the registry; ARGS='--secure-port 9443' passes flags
	@$(BIN)/clusterregistry standalone $(ARGS)

.PHONY: test
test: setup ## Run all tests, real kubectl included; ARGS='-k watch' passes pytest options
	@echo "==> Fetching the releases of kubectl, helm and etcd that the tests run"
	@$(BIN)/python tools/programs.py fetch $(TEST_PROGRAMS)
	@$(BIN)/python tools/programs.py fetch $(FAULT_PROGRAMS) || echo "==> Faults are tried on the packaged etcd"
	@echo "==> Running the tests in $(WORKERS) processes; WORKERS=0 runs them in one, in order"
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

.PHONY: test-fast
test-fast: setup ## Run the tests that start no other program, in process, under two minutes; ARGS='-k watch'
	$(BIN)/python -m pytest -q -rfE -n 2 --no-programs $(ARGS)

.PHONY: e2e
e2e: setup ## Run the registry behind a real kube-apiserver, built with Go the first time; E2E_HOST=1.34 is an older one
	@echo "==> Fetching kubectl, and building etcd and the control plane of Kubernetes $(E2E_HOST) unless they are there"
	@$(BIN)/python tools/programs.py fetch $(E2E_CLIENTS)
	@$(BIN)/python tools/programs.py fetch $(E2E_PROGRAMS) || echo "==> Tests that need them are skipped"
	@echo "==> Running aggregated mode, crinit both ways, and member clusters on Kubernetes $(E2E_HOST) with $(E2E_KUBECTL)"
	@echo "    (make skew: on every kube-apiserver that is pinned; make members: with members of several releases)"
	E2E=1 E2E_HOST=$(E2E_HOST) $(BIN)/python -m pytest -n 2 -m e2e \
	  tests/system/e2e tests/system/members tests/crinit tests/client $(ARGS)

.PHONY: members
members: setup ## Observe real member clusters of several releases, built with Go the first time; MEMBERS='1.36 1.34 1.32'
	@echo "==> Building the control planes of Kubernetes $(MEMBERS) unless they are there: some 15 minutes each"
	@$(BIN)/python tools/programs.py fetch etcd-server-3.6 kubectl-1.36 $(MEMBER_PROGRAMS)
	E2E=1 E2E_MEMBERS='$(MEMBERS)' $(BIN)/python -m pytest -n 0 -m e2e tests/system/members $(ARGS)

.PHONY: clients
clients: setup ## Drive the server with public clients: client-go, controller-runtime, kopf; CLIENTS_AGAINST=kube-apiserver
	@echo "==> Building clients with Go and installing kopf, unless they are there"
	@$(BIN)/python -m tests.system.clients || echo "==> Tests that need them are skipped"
	@$(BIN)/python tools/programs.py fetch etcd-3.5 $(if $(CLIENTS_AGAINST),$(BENCH_PROGRAMS))
	CLIENTS=1 $(if $(CLIENTS_AGAINST),E2E=1) $(BIN)/python -m pytest -n 2 tests/system/clients $(ARGS)

.PHONY: skew
skew: setup ## Test which kube-apiserver and kubectl work together, and write docs/reference/version-skew.md
	@echo "==> Building every kube-apiserver of tools/programs.toml unless it is there, then trying each with each kubectl"
	@$(BIN)/python -m tools.skew

.PHONY: lint
lint: setup ## Check style, types, layers and spelling
	@echo "==> Style"
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@echo "==> Types"
	$(BIN)/mypy
	@echo "==> Imports: which package may import which"
	$(BIN)/lint-imports
	@echo "==> Spelling"
	$(BIN)/codespell
	@echo "==> Words that docs/architecture/glossary.md replaces"
	@$(BIN)/python -m tools.glossary

.PHONY: format
format: setup ## Format the code and apply automatic fixes
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: bench
bench: setup ## Measure our server under load; ARGS='--scenario get,list_1000 --time 0.5 --engine etcd'
	@echo "==> Measuring our server under load"
	@$(BIN)/python -m benchmarks ours $(ARGS)

.PHONY: bench-compare
bench-compare: setup ## Measure it beside a real kube-apiserver and write benchmarks/RESULTS.md; ARGS=--growth adds growth
	@echo "==> Building kube-apiserver and its etcd unless they are there"
	@$(BIN)/python tools/programs.py fetch $(BENCH_PROGRAMS)
	@echo "==> Measuring both, scenario by scenario"
	@$(BIN)/python -m benchmarks compare $(ARGS)

.PHONY: bench-growth
bench-growth: setup ## Measure it with up to 100,000 objects and 5,000 watches, into benchmarks/RESULTS.md
	@echo "==> Measuring with more and more objects and watches"
	@$(BIN)/python -m benchmarks growth $(ARGS)

.PHONY: bench-floor
bench-floor: setup ## Measure heartbeats, watches and reads beside the least that a server in Python does for them
	@$(BIN)/python -m benchmarks floor $(ARGS)

.PHONY: bench-fleet
bench-fleet: setup ## Measure a status controller with 5,000 simulated members, into benchmarks/RESULTS.md; ARGS='--members 500'
	@$(BIN)/python -m benchmarks fleet $(ARGS)

.PHONY: bench-apply
bench-apply: setup ## Measure what managed fields and server-side apply cost, against the goals
	$(BIN)/python tools/bench_apply.py $(ARGS)

.PHONY: bench-storage
bench-storage: setup ## Measure writes, memory and start-up on SQLite and on a real etcd; ARGS=--quick is shorter
	@$(BIN)/python -m tools.bench_storage $(ARGS)

.PHONY: bench-retention
bench-retention: setup ## Measure reads while 100,000 objects expire, on SQLite and on a real etcd; ARGS='--count 1000'
	@$(BIN)/python -m tools.bench_retention $(ARGS)

.PHONY: bench-access
bench-access: setup ## Measure what authentication and authorization cost, against the goal
	$(BIN)/python tools/bench_access.py $(ARGS)

.PHONY: bench-instructions
bench-instructions: setup ## Count the processor's instructions of requests, with valgrind; ARGS='create patch' for some
	@$(BIN)/python -m tools.bench_instructions $(ARGS)

.PHONY: file-switches
file-switches: setup ## Count the files that requests run through, and the switches between them; ARGS='--show get'
	@$(BIN)/python tools/programs.py fetch etcd-3.5 >/dev/null
	@$(BIN)/python -m tools.file_switches $(ARGS)

.PHONY: budgets
budgets: setup ## Update what requests may cost in operations; ARGS='--show create' shows where they are
	@$(BIN)/python -m tests.system.performance $(ARGS)

.PHONY: coverage-access
coverage-access: setup ## Check that every branch of authentication and authorization is tested
	$(BIN)/python -m pytest -q -n 2 tests/apiserver/authn tests/apiserver/authz --cov=clusterregistry.apiserver.authn --cov=clusterregistry.apiserver.authz \
	  --cov-branch --cov-report=term-missing:skip-covered --cov-fail-under=100

.PHONY: crash-test
crash-test: setup ## Kill a busy server 200 times and check all it answered; ARGS='--rounds 20 --seed 7'
	@echo "==> Killing a busy server again and again"
	@$(BIN)/python -m tests.system.faults.crash_run $(ARGS)

.PHONY: fault-test
fault-test: setup ## Kill and pause etcd members and replicas for 5 minutes; ARGS='--seconds 300 --seed 7'
	@$(BIN)/python tools/programs.py fetch etcd-3.5
	@$(BIN)/python tools/programs.py fetch $(FAULT_PROGRAMS) || echo "==> Faults are tried on the packaged etcd"
	@echo "==> Killing and pausing three members of etcd and two replicas under load"
	@$(BIN)/python -m tests.system.faults.fault_run $(ARGS)

.PHONY: leader-test
leader-test: setup ## End the leader of two status controllers 20 times, in several ways, and report the takeovers; KILLS=20
	@echo "==> Killing, stopping and ending the leader $(KILLS) times: some 20 s each"
	LEADER_KILLS=$(KILLS) $(BIN)/python -m pytest -q -s -n 0 --timeout 3600 tests/controllers/test_leaders.py $(ARGS)

.PHONY: hostile-bodies
hostile-bodies: setup ## Measure what the worst bodies of each format cost the server; ARGS='--only yaml'
	@$(BIN)/python -m tools.hostile_bodies $(ARGS)

.PHONY: soak
soak: setup ## Put a server under steady load for an hour on each engine and look for growth; ARGS='--minutes 5 --engine sqlite'
	@$(BIN)/python tools/programs.py fetch etcd-3.5
	@$(BIN)/python -m tests.system.faults.soak $(ARGS)

.PHONY: conformance
conformance: setup ## Compare with kube-apiserver's recorded answers; ARGS=--quick is shorter
	@echo "==> Comparing with the recordings in tests/conformance"
	@$(BIN)/python -m tools.conformance $(ARGS)

.PHONY: programs
programs: setup ## Fetch the real programs that tests use into the cache
	@$(BIN)/python tools/programs.py fetch $(TEST_PROGRAMS)

.PHONY: docs-reference
docs-reference: setup ## Generate the reference pages from the code
	@echo "==> Writing docs/reference"
	@$(BIN)/python tools/reference.py $(ARGS)
	@$(BIN)/python -m tools.skew_page

.PHONY: lock
lock: ## Resolve requirements/*.lock again; ARGS=--upgrade takes the newest versions
	@$(PYTHON) -m tools.environment lock $(ARGS)

.PHONY: dist
dist: setup ## Build the wheel and the source distribution into dist/
	@$(BIN)/python -m tools.release dist

.PHONY: release
release: setup ## Check that a release is whole, then build all that it has into dist/: wheel, sdist, chart, checksums
	@$(BIN)/python tools/programs.py fetch helm-4.2
	@$(BIN)/python -m tools.release release $(ARGS)

.PHONY: clean
clean: ## Remove what was built, .venv included; downloaded programs stay in their cache
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests tools benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +

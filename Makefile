# Two commands matter on a fresh machine: `make demo` and `make test`.
# `make demo` assumes Python 3.11, 3.12 or 3.13 with venv and pip, and nothing else.

PY        ?= python3
VENV      ?= .venv
WORKERS   ?= 2
BIN       := $(VENV)/bin
INSTALL   := $(BIN)/python -m pip install -qq --disable-pip-version-check
PIP       := $(INSTALL) -c constraints.txt
MANIFEST  := pyproject.toml constraints.txt requirements.lock
KERNELS   := $(wildcard src/sfumato/kernels/*.py src/sfumato/kernels/*/*.py)
FIRST     := not slow and not data and not spark and not postgres and not e2e and not oracle and not stress
REST      := (slow or data or spark or postgres or e2e or oracle) and not stress
ROOMY     := [ -w /dev/shm ] && ! grep -q ' /dev/shm .*noexec' /proc/mounts && [ "$$(df -Pk /dev/shm | awk 'END {print $$4}')" -gt 4000000 ]
TEMPORARY := $(shell { $(ROOMY); } 2>/dev/null && echo /dev/shm || echo "$${TMPDIR:-/tmp}")
CONNECT   := tests/engines/test_agreement.py tests/engines/test_canaries.py tests/engines/test_spark_tables.py tests/engines/test_staging.py \
             tests/workflow/test_one_read.py tests/workflow/test_one_state.py tests/workflow/test_stored_rows_engines.py

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo services test gates quick-gates slow-gates check bench bench-peers stress spark-versions docs wheel lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

setup: $(VENV)/.stamp-warm  ## virtual environment, the package, compiled kernels

demo: setup  ## protect a generated table of people and say what came out
	$(BIN)/sfumato demo

services: $(VENV)/.stamp-test  ## what the tests start: Chromium and a Java runtime
	@.ci/services

# Tests start many processes: bytecode is kept, even where the shell says otherwise.
test check stress: export PYTHONDONTWRITEBYTECODE :=
# They write thousands of files and wait until each is on the disk: in memory, where there is room, nobody waits.
test check: export PYTEST_DEBUG_TEMPROOT := $(TEMPORARY)

test: setup services  ## the gates, then every test but the stress tests
	@$(MAKE) --no-print-directory quick-gates
	@echo "== types and layers, beside the tests with Spark as a client of a Connect server (shown when they are done)"
	@shown=$$(mktemp); SFUMATO_SPARK=connect $(BIN)/python -m pytest -m spark $(CONNECT) >"$$shown" 2>&1 & spark=$$!; \
		trap 'kill $$spark 2>/dev/null; rm -f "$$shown"' EXIT; trap 'exit 130' INT TERM; \
		$(MAKE) --no-print-directory slow-gates; gates=$$?; \
		wait $$spark; tests=$$?; cat "$$shown"; [ $$gates -eq 0 ] && [ $$tests -eq 0 ]
	@echo "== fast tests, $(WORKERS) at a time"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "$(FIRST)" || [ $$? -eq 5 ]
	@echo "== slow tests and tests with servers, $(WORKERS) at a time"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "$(REST)" || [ $$? -eq 5 ]

gates: quick-gates slow-gates

quick-gates: $(VENV)/.stamp-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

slow-gates: $(VENV)/.stamp-test
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

check: gates  ## lint, format, types, layers, sizes and names
	$(BIN)/python -m pytest tests/architecture

bench: setup  ## measure speed against the bars; writes benchmarks/results.json
	$(BIN)/python -m benchmarks.run

bench-peers: $(VENV)/.stamp-test  ## measure the peers, each in its own environment
	$(BIN)/python -m benchmarks.peers

stress: $(VENV)/.stamp-test services  ## long runs: many rows, many examples, faults, killed processes
	@$(BIN)/python -m pytest -m stress || [ $$? -eq 5 ]
	@echo "== property tests again, with more examples"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "hypothesis and not stress and not spark and not postgres and not e2e and not oracle" --hypothesis-profile stress

spark-versions: services  ## the tests with Spark on every version that is read from, classic and Connect
	@PY=$(PY) .ci/spark-versions

docs: $(VENV)/.stamp-docs  ## the documentation as a site in site/
	$(BIN)/zensical build -f mkdocs.yml

wheel: $(BIN)/activate  ## the wheel and its software bill of materials in dist/
	$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps -w dist .
	$(BIN)/python tools/sbom.py dist

lock:  ## resolve every dependency afresh into constraints.txt and requirements.lock
	rm -rf .venv-lock
	$(PY) -m venv .venv-lock
	.venv-lock/bin/python -m pip install -qq --disable-pip-version-check -e '.[all,test,docs]'
	.venv-lock/bin/python -m pip freeze --exclude-editable --exclude sfumato > constraints.txt
	.venv-lock/bin/python -m pip install -qq --upgrade pip
	.venv-lock/bin/python tools/lock.py
	rm -rf .venv-lock

clean:  ## everything that was built; keeps releases and ledgers
	rm -rf $(VENV) .venv-lock .venv-spark benchmarks/.peers site build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(BIN)/activate:
	@command -v $(PY) >/dev/null || { echo "$(PY) was not found. Install Python 3.11, or name one: make PY=/path/to/python3.11"; exit 2; }
	@$(PY) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' \
		|| { echo "sfumato needs Python 3.11, 3.12 or 3.13; $(PY) is $$($(PY) --version 2>&1). Name another: make PY=python3.11"; exit 2; }
	@$(PY) -c 'import venv, ensurepip' 2>/dev/null \
		|| { echo "$(PY) has no venv module (Debian and Ubuntu keep it in the package python3-venv). Install it and try again."; exit 2; }
	$(PY) -m venv $(VENV)

# With digests where the lock has them for this Python and platform; a file with another digest stops the installation.
$(VENV)/.stamp: $(MANIFEST) | $(BIN)/activate
	@if $(BIN)/python tools/lock.py covers; then \
		$(INSTALL) --require-hashes --only-binary :all: -r requirements.lock && $(INSTALL) --no-deps -e .; \
	else \
		echo "requirements.lock has no files for this Python on this platform: installing from constraints.txt, without digests"; \
		$(PIP) -e '.[formats,postgres]'; \
	fi
	@touch $@

# Kernels are compiled here and never in the middle of a user's command.
$(VENV)/.stamp-warm: $(VENV)/.stamp $(KERNELS)
	$(BIN)/sfumato warm
	@touch $@

$(VENV)/.stamp-test: $(VENV)/.stamp
	$(PIP) -e '.[test]'
	@touch $@

$(VENV)/.stamp-docs: $(VENV)/.stamp
	$(PIP) -e '.[docs]'
	@touch $@

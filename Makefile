# Two commands do everything on a fresh Debian or Ubuntu machine, set-up included:
#
#   make demo   five local nodes, a partition, a verdict, a report
#   make test   all tests; those on real nodes too, where this user may make network namespaces (root)
#
# `make test-night` runs what `make test` leaves to the night: more seeds of tests that it has too. `make fuzz-night` runs the
# command on damaged files and hostile programs for an hour, or for MINUTES, with the seed SEED. `make pairs-night` compares pairs of
# runs of programs in virtual time: 100 of each system, or PAIRS of SYSTEMS, and with earlier nights in the file DIGESTS.
# `make dist` builds a wheel and a source distribution in dist/. `make programs` builds all that a test on nodes needs; what a
# system builds itself (`labrys build`) is in the user's cache.
# `make docs` writes the documentation as a site to build/site; a link that leads nowhere is an error.
# `make vm-box` and `make vm-night` make virtual machines and test in them: docs/guide/clusters.md.
#
# Every step leaves a stamp under build/ and runs again only if what it depends on has changed.

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

VENV      := .venv
BIN       := $(VENV)/bin
SUDO      := $(if $(filter 0,$(shell id -u)),,sudo)
NODES     := $(patsubst %/pom.xml,%,$(wildcard clusters/systems/*/node/pom.xml))
# `labrys build`, before Labrys itself is installed and its entry points are known.
DEFAULT   := $(BIN)/python -m tools.default_system
ROOMS     := harness nemesis workloads checker clusters results commands
PYTHON    := $(ROOMS) cli.py tests benchmarks tools
NODES_SRC := $(addsuffix /pom.xml,$(NODES)) $(shell find $(addsuffix /src,$(NODES)) -type f 2>/dev/null)
LINUX     := clusters/sim/linux/controller
LINUX_SRC := $(wildcard $(LINUX)/Cargo.*) $(LINUX)/build.rs $(shell find $(LINUX)/src $(LINUX)/vdso -type f)
SWITCH    := clusters/local/switch
SWITCH_SRC := $(wildcard $(SWITCH)/Cargo.*) $(wildcard $(SWITCH)/src/*.rs)
TRACER    := nemesis/tracer
TRACER_SRC := $(wildcard $(TRACER)/Cargo.*) $(shell find $(TRACER)/src -type f)
RUST_SRC  := $(wildcard checker/kernel/Cargo.*) $(shell find checker/kernel/src -type f)
MVN       := mvn --batch-mode --no-transfer-progress --quiet -f
CARGO     := cargo --quiet
# The tests start Python hundreds of times. So it keeps what it has compiled, even if this environment says otherwise.
PYTEST    := env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest --numprocesses 3 --durations 25
TEST_TARGET := build/cargo-test

export MATURIN_NO_INSTALL_RUST := 1

.PHONY: demo test test-night fuzz-night pairs-night lint docs bench dist clean setup programs default-system vm-box vm-night

demo:
	@$(SUDO) true
	@$(MAKE) --no-print-directory --jobs=3 build/kernel.stamp default-system
	$(SUDO) $(BIN)/labrys test --cluster local --workload register \
	    --nemesis partition-random-halves --rate 15 --time-limit 60

test: programs build/kernel-test.stamp build/linux-test.stamp build/switch-test.stamp build/node-test.stamp
	$(PYTEST) --run-limit 3600

test-night: programs
	$(PYTEST) -m night --run-limit 6000

fuzz-night: setup
	$(BIN)/python -m benchmarks fuzz --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED))

pairs-night: programs
	$(BIN)/python -m benchmarks linux --pairs $(or $(PAIRS),100) --trace-all --seconds 10 --digests $(or $(DIGESTS),build/digests.json) \
	    $(if $(SYSTEMS),--systems $(SYSTEMS))

lint: setup build/clippy.stamp docs
	$(BIN)/ruff check $(PYTHON)
	$(BIN)/ruff format --check $(PYTHON)
	$(BIN)/mypy $(PYTHON)
	$(BIN)/lint-imports
	cd checker/kernel && CARGO_TARGET_DIR=$(CURDIR)/$(TEST_TARGET) $(CARGO) clippy --all-targets -- -D warnings
	cd $(LINUX) && CARGO_TARGET_DIR=$(CURDIR)/$(TEST_TARGET) $(CARGO) clippy --all-targets -- -D warnings
	cd $(SWITCH) && CARGO_TARGET_DIR=$(CURDIR)/$(TEST_TARGET) $(CARGO) clippy --all-targets -- -D warnings
	cd $(TRACER) && CARGO_TARGET_DIR=$(CURDIR)/$(TEST_TARGET) $(CARGO) clippy --all-targets -- -D warnings

docs: build/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: setup
	$(BIN)/python -m benchmarks

dist: build/deps.stamp
	$(DEFAULT) packaged
	rm -rf dist
	mkdir dist
	$(BIN)/maturin pep517 write-sdist --sdist-directory dist
	$(BIN)/maturin build --quiet --release --out dist

vm-box: dist
	sh tools/vm/host.sh
	sh tools/vm/box.sh build/vm/labrys.box

vm-night: dist
	sh tools/vm/night.sh $(or $(OUT),night/vm) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only "$(ONLY)")

clean:
	rm -rf build dist $(VENV) checker/_kernel*.so checker/kernel/target $(LINUX)/target $(SWITCH)/target $(TRACER)/target $(addsuffix /target,$(NODES)) clusters/systems/*/packaged .mypy_cache .ruff_cache .pytest_cache .hypothesis

setup: build/kernel.stamp build/dev.stamp build/spark.stamp

# A test builds what it needs; a build beforehand keeps its time out of the first test.
programs: setup
	$(BIN)/labrys build --system rocketmq-controller
	$(BIN)/labrys build --system bookkeeper
	$(BIN)/labrys build --cluster sim

build/system.stamp: clusters/provision/control.sh
	sh clusters/provision/control.sh
	@mkdir -p build && touch $@

build/clippy.stamp: build/system.stamp
	sh clusters/provision/control.sh clippy
	@touch $@

build/venv.stamp: pyproject.toml build/system.stamp
	@[ -x $(BIN)/python ] || python3 -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
	@touch $@

# What `labrys` needs (deps), and what only the tests and lint (dev), or `labrys analyze` (spark), need beside it: 600 MB that the
# demo does without. One pip at a time works in the environment.
build/deps.stamp: build/venv.stamp
build/dev.stamp: build/kernel.stamp
build/spark.stamp: build/dev.stamp
build/docs.stamp: build/spark.stamp
build/deps.stamp build/dev.stamp build/spark.stamp build/docs.stamp: build/%.stamp:
	@$(BIN)/python -c 'import sys, tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	    print(*{"deps": project["dependencies"], **project["optional-dependencies"]}[sys.argv[1]], sep="\n")' $* > build/$*.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement build/$*.txt
	@touch $@

# The compiler works while pip does: only the last step needs both.
build/extension.stamp: build/venv.stamp $(RUST_SRC)
	$(BIN)/maturin develop --quiet --release --skip-install
	@touch $@

build/kernel.stamp: build/extension.stamp build/deps.stamp
	$(BIN)/maturin develop --quiet --release >build/install.log 2>&1 || { cat build/install.log >&2; exit 1; }
	@touch $@

# While the compiler of the kernel works. As root and with this PATH, because the test takes the artifact from root's cache.
default-system: build/deps.stamp
	$(SUDO) env "PATH=$$PATH" $(DEFAULT)

build/kernel-test.stamp: build/venv.stamp $(RUST_SRC)
	cd checker/kernel && CARGO_TARGET_DIR=$(CURDIR)/$(TEST_TARGET) $(CARGO) test --no-default-features
	@touch $@

build/linux-test.stamp: build/venv.stamp $(LINUX_SRC) $(TRACER_SRC)
	cd $(LINUX) && CARGO_TARGET_DIR=$(CURDIR)/$(TEST_TARGET) $(CARGO) test
	cd $(TRACER) && CARGO_TARGET_DIR=$(CURDIR)/$(TEST_TARGET) $(CARGO) test
	@touch $@

build/switch-test.stamp: build/venv.stamp $(SWITCH_SRC)
	cd $(SWITCH) && CARGO_TARGET_DIR=$(CURDIR)/$(TEST_TARGET) $(CARGO) test
	@touch $@

build/node-test.stamp: build/system.stamp $(NODES_SRC)
	for node in $(NODES); do $(MVN) $$node/pom.xml test || exit 1; done
	@mkdir -p build && touch $@

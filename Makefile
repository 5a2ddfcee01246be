# A thin front end for CMake.  `make help` lists the targets.  As root on Debian each target installs the packages that it
# needs; elsewhere it names the missing ones.

MAKEFLAGS += --no-print-directory

JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX  ?= /usr/local
NUMBER  ?= 175451865205073170563711388363
RUNS    ?= 5
MINUTES ?= 30

NEED_BUILD := cmake make gcc g++
NEED_CLANG := clang-19 libclang-rt-19-dev:libclang-rt-19-dev
BUILD      := build
USER_BUILD := $(BUILD)/user

# The build of users: no preset (presets make every warning an error), no tests.  $(call user-build,targets[,options])
user-build = cmake -S . -B $(USER_BUILD) -DCMAKE_BUILD_TYPE=Release -DMI_BUILD_TESTS=OFF $(2) --log-level=NOTICE > /dev/null && \
             cmake --build $(USER_BUILD) --parallel $(JOBS) --target $(1)

# Configure and build: $(call build,preset[,targets])
build = cmake --preset $(1) --log-level=NOTICE > /dev/null && \
        cmake --build $(BUILD)/$(1) --parallel $(JOBS) $(if $(2),--target $(2))

# The benchmarks, in the build of users
bench-build   = scripts/need.sh cmake make gcc g++ python3 && $(call user-build,mimalloc bench,-DMI_BUILD_BENCH=ON)
bench-note    = $(if $(NOTE),--note '$(NOTE)')
bench-common  = --programs $(USER_BUILD)/bench --from-tree $(bench-note) \
                $(if $(QUICK),--quick $(if $(filter file,$(origin RUNS)),,--rounds $(RUNS)),--rounds $(RUNS))
bench-allocs  = --alloc ours=$(USER_BUILD)/libmimalloc.so $(if $(PEERS),--peers $(PEERS)) $(if $(ALLOCS),--allocs $(ALLOCS))
bench-options = $(bench-allocs) $(bench-common) $(if $(TESTS),--tests $(TESTS))
cells-options = $(bench-allocs) --from-tree $(bench-note) $(if $(QUICK),--quick) --jobs $(JOBS) \
                $(if $(SIZES),--sizes $(SIZES)) $(if $(PATTERNS),--patterns $(PATTERNS))

# What docs/benchmarks shows: allocators by speed and memory, builds by what they cost, builds and others by what they find
RESULT       ?= $(BUILD)/results.json
SHOWN        := ours,glibc,mimalloc2,mimalloc3,snmalloc,rpmalloc,jemalloc,tcmalloc,gtcmalloc
SHOWN_BUGS   := jemalloc snmalloc mimalloc2 mimalloc3 mimalloc2-secure mimalloc3-secure scudo hardened
bugs-peers    = $(SHOWN_BUGS:%=$(PEERS)/lib%.so)
shown-builds  = release=$(USER_BUILD)/libmimalloc.so secure=$(BUILD)/secure/libmimalloc-secure.so \
                secure-full=$(BUILD)/secure-full/libmimalloc-secure.so

# The presets with which real programs run: BUILDS=NAME,NAME; WITHOUT=PROGRAM,PROGRAM leaves some out
comma           := ,
BUILDS          ?= release
programs-builds  = $(subst $(comma), ,$(BUILDS))

.PHONY: help all demo test test-rest test-all test-package test-bugs test-tools test-command test-rust test-nim test-programs bench \
        bench-scaling bench-landscape bench-nim bench-report bench-results bench-publish site soak format tidy install dist \
        clean mutants schedule fuzz storms storms-strict bench-latency proof analyse coverage test-conditions

all: ## build the libraries into build/user
	@scripts/need.sh cmake make gcc
	@$(call user-build,all)
	@ls -1 $(USER_BUILD)/libmimalloc.so $(USER_BUILD)/libmimalloc.a $(USER_BUILD)/mimalloc.o

help: ## show this list
	@echo "make TARGET [VARIABLE=value ...]"
	@awk -F ': *.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Variables: JOBS=$(JOBS) PREFIX=$(PREFIX) NUMBER=$(NUMBER) RUNS=$(RUNS) MINUTES=$(MINUTES)"

demo: ## factor NUMBER with this allocator and with the system's; show statistics, time and memory
	@scripts/need.sh cmake make gcc
	@$(call user-build,mimalloc demo)
	@demo/run-demo.sh --runs "$(RUNS)" $(USER_BUILD) "$(NUMBER)"

test: ## run the tests of the release build (8 minutes on 2 cores); say what is left and which command runs it
	@scripts/need.sh python3
	@scripts/run-tests.py --jobs $(JOBS) quick

test-rest: ## run what continuous integration runs beyond that: packaging, other builds, sanitizers, clang
	@scripts/need.sh python3
	@scripts/run-tests.py --jobs $(JOBS) rest

test-all: ## run both, with one report (50 minutes on 2 cores)
	@scripts/need.sh python3
	@scripts/run-tests.py --jobs $(JOBS) all

test-package: ## run all package tests, also those with package managers and other versions of CMake (uses registries)
test-bugs: ## run programs with one bug each; the detections must be those in test/bugs/table.toml
test-tools: ## test under valgrind and the address sanitizer, also real programs; test the probes for tracers (15 minutes)
test-command: ## test the command mimalloc, published pages and the Python package
test-rust: ## test the crate for Rust, also with all features and with other crates for mimalloc (uses registries)
test-package test-bugs test-tools test-command test-rust:
	@scripts/need.sh python3
	@scripts/run-tests.py --jobs $(JOBS) $(@:test-%=%)

test-nim: ## test the Nim package with Nim 1.6 and, from PyPI, Nim 2 (10 minutes); nimble test is shorter
	@scripts/need.sh python3
	@scripts/run-tests.py --jobs $(JOBS) nim-all

test-%: ## run the tests of one platform, under its emulator: scripts/run-tests.py --list names them
	@scripts/need.sh python3
	@scripts/run-tests.py --jobs $(JOBS) $*

test-programs: ## run 77 real programs under LD_PRELOAD, of which 76 are in the published matrix; BUILDS=release,secure-full,debug-full compares builds, JSON=FILE keeps the results (installs much; an hour)
	@scripts/need.sh $(NEED_BUILD) python3
	@$(foreach b,$(programs-builds),$(call build,$(b),mimalloc) &&) true
	@test/programs/run.py --all $(foreach b,$(programs-builds),--lib $(b)=$(BUILD)/$(b)) \
	  $(patsubst %,--without %,$(subst $(comma), ,$(WITHOUT))) $(if $(JSON),--json $(JSON))

bench: ## run the benchmarks; PEERS=DIR (each NAME.so there; bench/fetch-peers.sh DIR), QUICK=1, TESTS=A,B and ALLOCS=A,B select
	@$(bench-build)
	@bench/bench.py run $(bench-options) --json $(BUILD)/bench.json

bench-scaling: ## measure how the CPU time of the parallel benchmarks grows with threads; takes the same variables
	@$(bench-build)
	@bench/bench.py scaling $(bench-options) --json $(BUILD)/bench.json

bench-landscape: ## count the instructions of calls for all sizes; PEERS=DIR, ALLOCS=A,B, SIZES=64,4K and PATTERNS=A,B select
	@scripts/need.sh cmake make gcc python3 valgrind binutils:objdump && $(call user-build,mimalloc)
	@bench/bench.py landscape $(cells-options) --json $(BUILD)/bench.json

bench-latency: ## measure how long single calls take, as a distribution; PEERS=DIR, ALLOCS=A,B, WORKLOADS=A,B, RUNS=9, QUICK=1
	@scripts/need.sh cmake make gcc g++ python3 && $(call user-build,mimalloc bench-latency,-DMI_BUILD_BENCH=ON)
	@bench/bench.py latency --program $(USER_BUILD)/bench/latency $(bench-allocs) --rounds $(RUNS) $(if $(QUICK),--quick) \
	  $(if $(WORKLOADS),--workloads $(WORKLOADS)) --csv $(BUILD)/latency.csv

bench-nim: ## measure binary trees in Nim with the Nim package and without it; DEPTH=16, NIM='NAME=COMMAND ...', PEER='NAME=DIR ...'
	@scripts/need.sh python3 nim gcc
	@bench/nim/run.py --depth $(or $(DEPTH),16) --rounds $(RUNS) $(if $(NIM),--nim $(NIM)) $(if $(PEER),--peer $(PEER))

bench-report: ## make a page with charts of the results of bench, bench-scaling and bench-landscape
	@scripts/need.sh python3
	@bench/bench.py report $(BUILD)/bench.json --out $(BUILD)/bench-report

bench-results: ## measure everything in docs/benchmarks, with the libraries in PEERS, and publish it (two hours)
	@ls $(bugs-peers) > /dev/null || { echo "bench-results needs PEERS=DIR with these, see bench/README.md" >&2; exit 2; }
	@$(bench-build)
	@$(call build,release,bugs) && $(call build,secure,mimalloc) && $(call build,secure-full,mimalloc) && \
	 $(call build,debug,mimalloc)
	@rm -f $(RESULT)
	@bench/bench.py run $(bench-options) $(if $(ALLOCS),,--allocs $(SHOWN)) --json $(RESULT) || [ $$? = 1 ] # a FAIL is shown
	@bench/bench.py modes $(bench-common) --tests $(or $(TESTS),real) $(shown-builds:%=--alloc %) --json $(RESULT) || [ $$? = 1 ]
	@bench/bench.py landscape $(cells-options) $(if $(ALLOCS),,--allocs $(SHOWN)) --json $(RESULT) || [ $$? = 1 ]
	@test/bugs/run.py table --programs $(BUILD)/release/test/bugs $(shown-builds:%=--own %) \
	  --own debug=$(BUILD)/debug/libmimalloc-debug.so $(bench-note) --json $(RESULT) $(bugs-peers) > /dev/null
	@$(MAKE) bench-publish RESULT=$(RESULT)

bench-publish: ## make docs/benchmarks and the README's figures from docs/benchmarks/results.json; RESULT=FILE replaces it first
	@scripts/need.sh python3
	@bench/bench.py publish $(if $(filter-out file,$(origin RESULT)),$(RESULT))

site: ## build the documentation site into build/site (uses PyPI, or Debian's Sphinx)
	@scripts/need.sh python3
	@docs/site/build.py $(BUILD)/site

mutants: ## change the allocator in 100 places, one at a time, and list what no test notices; COUNT, SEED and ONLY=FILE select
	@scripts/need.sh $(NEED_BUILD) python3
	@test/mutation/run.py --jobs $(JOBS) $(COUNT:%=--count %) $(SEED:%=--seed %) $(if $(ONLY),--only $(ONLY))

schedule: ## run the protocols of threads in COUNT seeded interleavings from SEED on
	@scripts/need.sh $(NEED_BUILD)
	@$(call build,release,test-schedule-protocols)
	@$(BUILD)/release/test/test-schedule-protocols $(or $(COUNT),1000000) $(or $(SEED),1) $(JOBS)

analyse: ## have cppcheck, gcc -fanalyzer and clang-tidy with clang's analyser look at the library (10 minutes)
	@scripts/need.sh $(NEED_BUILD) $(NEED_CLANG) clang-tidy-19 cppcheck python3
	@cmake --preset clang-debug --log-level=NOTICE > /dev/null
	@scripts/analyse.py $(BUILD)/clang-debug --jobs $(JOBS)

coverage: ## count the lines of arena, page and heap that tests run (10 minutes; uses PyPI); TESTS=REGEX selects
	@scripts/need.sh $(NEED_BUILD) python3
	@scripts/coverage.sh $(BUILD)/coverage --jobs $(JOBS) $(if $(TESTS),--tests '$(TESTS)')

test-conditions: ## run the quick tests as on an old processor, on one processor, beside 50 busy processes, and without root
	@scripts/need.sh $(NEED_BUILD) python3
	@$(call build,release)
	@JOBS=$(JOBS) scripts/test-conditions.sh $(BUILD)/release

proof: ## prove arithmetic for all inputs, and that the proofs find faults, with CBMC or, from PyPI, ESBMC (3 minutes)
	@scripts/need.sh python3
	@test/proof/run.py --install --all --seeded

soak: ## for MINUTES: randomised tests with new seeds, a process that lives on, recorded traces; memory and statistics checked
	@scripts/need.sh $(NEED_BUILD) python3
	@$(call user-build,mimalloc bench-trace-replay bench-trace-record bench-bounds,-DMI_BUILD_BENCH=ON)
	@$(call build,release)
	@$(call build,debug-full)
	@SOAK_PROGRAMS=$(abspath $(USER_BUILD))/bench SOAK_LIBRARY=$(abspath $(USER_BUILD))/libmimalloc.so \
	  scripts/soak.sh $(MINUTES) $(BUILD)/release $(BUILD)/debug-full

storms: ## run the storms at their full size: 10^4 forks, 10^5 threads, signals, exits, dlopen (15 minutes)
	@scripts/need.sh $(NEED_BUILD)
	@$(call build,release)
	@scripts/storms.sh $(BUILD)/release

storms-strict: ## as root: set vm.overcommit_memory to 2, run storms and tests of memory, and put it back; disturbs other programs
	@scripts/need.sh $(NEED_BUILD)
	@$(call build,release)
	@scripts/storms.sh --strict $(BUILD)/release

fuzz: ## run the targets of libFuzzer, each for MINUTES; TARGETS=heaps selects
	@scripts/need.sh $(NEED_BUILD) $(NEED_CLANG)
	@cmake --preset clang-asan -DMI_TEST_KINDS=fuzz -B $(BUILD)/fuzz --log-level=NOTICE > /dev/null && \
	 cmake --build $(BUILD)/fuzz --parallel $(JOBS)
	@scripts/fuzz.sh $(MINUTES) $(BUILD)/fuzz $(TARGETS)

format: ## format all sources according to .clang-format
	@scripts/need.sh clang-format-19
	@scripts/format-check.sh --fix

tidy: ## run clang-tidy over the library
	@scripts/need.sh $(NEED_BUILD) $(NEED_CLANG) clang-tidy-19
	@cmake --preset clang-debug --log-level=NOTICE > /dev/null
	@scripts/tidy.sh $(BUILD)/clang-debug

install: all ## install the libraries below PREFIX
	@cmake --install $(USER_BUILD) --prefix "$(PREFIX)"

dist: ## make the source archive of a release from a clean checkout: build/mimalloc-VERSION.tar.gz
	@scripts/dist.sh $(BUILD)

clean: ## remove all builds
	@rm -rf $(BUILD)

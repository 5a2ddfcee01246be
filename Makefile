# A thin front for CMake: what one types.  `make help` lists the targets; each installs the Debian packages it needs when
# run as root, and says what is missing otherwise.

MAKEFLAGS += --no-print-directory

JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX  ?= /usr/local
NUMBER  ?= 175451865205073170563711388363
RUNS    ?= 5
MINUTES ?= 30

NEED_BUILD := cmake make gcc g++
NEED_CLANG := clang-19 libclang-rt-19-dev:libclang-rt-19-dev
NEED_LTO   := lld-19:ld.lld-19 llvm-19:llvm-ar-19
NEED_TRACE := systemtap-sdt-dev gdb
BUILD      := build
USER_BUILD := $(BUILD)/user

# What users build: no preset (those make every warning an error), no tests.  $(call user-build,targets[,options])
user-build = cmake -S . -B $(USER_BUILD) -DCMAKE_BUILD_TYPE=Release -DMI_BUILD_TESTS=OFF $(2) --log-level=NOTICE > /dev/null && \
             cmake --build $(USER_BUILD) --parallel $(JOBS) --target $(1)

# Configure, build, test: $(call build,preset[,targets]) and $(call check,preset[,arguments of ctest])
build = cmake --preset $(1) --log-level=NOTICE > /dev/null && \
        cmake --build $(BUILD)/$(1) --parallel $(JOBS) $(if $(2),--target $(2))
check = $(call build,$(1)) && \
        ctest --test-dir $(BUILD)/$(1) --parallel $(JOBS) --output-on-failure --no-tests=error $(2)

# The benchmarks, in what users build
bench-build   = scripts/need.sh cmake make gcc g++ python3 && $(call user-build,mimalloc bench,-DMI_BUILD_BENCH=ON)
bench-options = --alloc ours=$(USER_BUILD)/libmimalloc.so --programs $(USER_BUILD)/bench \
                $(if $(QUICK),--quick $(if $(filter file,$(origin RUNS)),,--rounds $(RUNS)),--rounds $(RUNS)) \
                $(if $(PEERS),--peers $(PEERS)) $(if $(TESTS),--tests $(TESTS)) $(if $(ALLOCS),--allocs $(ALLOCS))

.PHONY: help all demo test test-release test-debug test-cxx test-secure test-level3 test-sanitizers test-clang test-package \
        test-bugs test-tools test-programs bench \
        bench-scaling bench-report soak format tidy install clean

all: ## builds the libraries into build/user
	@scripts/need.sh cmake make gcc
	@$(call user-build,all)
	@ls -1 $(USER_BUILD)/libmimalloc.so $(USER_BUILD)/libmimalloc.a $(USER_BUILD)/mimalloc.o

help: ## this list
	@echo "make TARGET [VARIABLE=value ...]"
	@awk -F ': *.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Variables: JOBS=$(JOBS) PREFIX=$(PREFIX) NUMBER=$(NUMBER) RUNS=$(RUNS) MINUTES=$(MINUTES)"

demo: ## factors NUMBER with this allocator and with the system's; shows statistics, time and memory
	@scripts/need.sh cmake make gcc
	@$(call user-build,mimalloc demo)
	@demo/run-demo.sh --runs $(RUNS) $(USER_BUILD) $(NUMBER)

test: test-release test-debug test-cxx test-secure test-level3 test-sanitizers test-clang ## all tests in all builds, and quick real programs

test-release: ## style, golden counts, packaging, quick programs, and all tests of the release build
	@scripts/need.sh $(NEED_BUILD) python3 valgrind binutils:objdump pkg-config relacy-dev:relacy-dev
	@scripts/need.sh $(NEED_CLANG) $(NEED_LTO) > /dev/null 2>&1 || echo "SKIP package tests with clang: it cannot be installed here"
	@scripts/need.sh $(NEED_TRACE) > /dev/null 2>&1 || echo "SKIP tests of probes: $(NEED_TRACE) cannot be installed here"
	@$(call check,release)

test-debug: ## all tests with internal checks on
	@scripts/need.sh $(NEED_BUILD)
	@$(call check,debug)

test-cxx: ## the library compiled as C++
	@scripts/need.sh $(NEED_BUILD)
	@$(call check,cxx,-L 'api|modes' -R shared)

test-secure: ## with security measures, the cheap ones and all
	@scripts/need.sh $(NEED_BUILD) python3
	@$(call check,secure,-L 'unit|api|bugs')
	@$(call check,secure-full,-L 'unit|api|modes|fault|bugs')

test-level3: ## a build for level 3 of the interface
	@scripts/need.sh $(NEED_BUILD)
	@$(call check,level3,-L 'unit|api|modes')

test-sanitizers: ## under the address, undefined behaviour and thread sanitizers
	@scripts/need.sh $(NEED_BUILD)
	@$(call check,asan)
	@$(call check,ubsan,-L 'unit|api')
	@$(call check,tsan,-L 'unit|modes|stress|fault')

test-clang: ## with clang, and with its fuzzer; skipped where clang-19 cannot be had
	@if scripts/need.sh $(NEED_CLANG) > /dev/null 2>&1; then \
	  $(call check,clang-release,-L 'api|unit|fault|override|preload') && \
	  $(call check,clang-asan,-L 'fuzz|unit'); \
	else echo "SKIP test-clang: clang-19 cannot be installed here"; fi

test-package: ## all package tests, also those with package managers and other versions of CMake (asks registries)
	@scripts/need.sh $(NEED_BUILD) python3 binutils:objdump pkg-config
	@scripts/need.sh $(NEED_CLANG) $(NEED_LTO) > /dev/null 2>&1 || echo "SKIP package tests with clang: it cannot be installed here"
	@scripts/need.sh nim > /dev/null 2>&1 || echo "SKIP package-nim: Nim cannot be installed here"
	@cmake --preset release --log-level=NOTICE > /dev/null
	@ctest --test-dir $(BUILD)/release --parallel $(JOBS) --output-on-failure --no-tests=error -C long -R '^package-'

test-bugs: ## programs with one bug each: what is detected must be what test/bugs/table.toml says
	@scripts/need.sh $(NEED_BUILD) python3
	@$(call check,release,-L bugs)
	@$(call check,debug,-L bugs)
	@$(call check,secure,-L bugs)
	@$(call check,secure-full,-L bugs)

test-tools: ## under valgrind and the address sanitizer, also real programs; the probes for tracers (a quarter of an hour)
	@scripts/need.sh $(NEED_BUILD) python3 valgrind binutils:readelf
	@scripts/need.sh $(NEED_TRACE) > /dev/null 2>&1 || echo "SKIP tests of probes: $(NEED_TRACE) cannot be installed here"
	@$(call check,valgrind,-C long -L tools)
	@$(call check,asan,-L tools)
	@$(call check,release,-C long -L tools)

test-programs: ## real programs under LD_PRELOAD, all of them (installs databases and a browser; half an hour)
	@scripts/need.sh $(NEED_BUILD) python3
	@$(call user-build,mimalloc)
	@python3 test/programs/run.py --all --lib $(USER_BUILD)/libmimalloc.so

bench: ## benchmarks; PEERS=DIR (bench/fetch-peers.sh DIR), QUICK=1, TESTS=A,B and ALLOCS=A,B say which
	@$(bench-build)
	@bench/bench.py run $(bench-options) --json $(BUILD)/bench.json

bench-scaling: ## how the CPU time of the parallel benchmarks grows with threads; takes the same variables
	@$(bench-build)
	@bench/bench.py scaling $(bench-options) --json $(BUILD)/bench.json

bench-report: ## a page with charts of what bench and bench-scaling measured
	@scripts/need.sh python3
	@bench/bench.py report $(BUILD)/bench.json --out $(BUILD)/bench-report

soak: ## tests with chance in them, with new seeds, for MINUTES
	@scripts/need.sh $(NEED_BUILD)
	@$(call build,release)
	@$(call build,debug-full)
	@scripts/soak.sh $(MINUTES) $(BUILD)/release $(BUILD)/debug-full

format: ## lays out all sources as .clang-format says
	@scripts/need.sh clang-format-19
	@scripts/format-check.sh --fix

tidy: ## clang-tidy over the library
	@scripts/need.sh $(NEED_BUILD) $(NEED_CLANG) clang-tidy-19
	@cmake --preset clang-debug --log-level=NOTICE > /dev/null
	@scripts/tidy.sh $(BUILD)/clang-debug

install: all ## installs the libraries below PREFIX
	@cmake --install $(USER_BUILD) --prefix $(PREFIX)

clean: ## removes all builds
	@rm -rf $(BUILD)

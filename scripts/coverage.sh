#!/bin/sh
# The share of lines of each file of arena, page and heap that tests run: `make coverage`.
#
#   scripts/coverage.sh BUILD [--jobs N] [--tests REGEX]      BUILD is made
#
# gcov counts in the library that tests of internals link with; gcovr (from PyPI, in build/venv-coverage, or on the PATH) reports:
# BUILD/index.html has the lines.  That library checks blocks, and so has no gap pages: their files are left out, as is window.c, which
# is for systems without virtual memory.  Exit status 1: a layer is below what is asked for.
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:?usage: coverage.sh BUILD [--jobs N] [--tests REGEX]}
shift
jobs=2 tests='^(unit|api|modes|fault|fuzz|stress)-'
while [ $# -gt 1 ]; do
  case $1 in
    --jobs) jobs=$2 ;;
    --tests) tests=$2 ;;
    *) exit 2 ;;
  esac
  shift 2
done
share=95
left_out='src/(heap/(gaps|gap_map|sparse|hollow)[.][ch]|arena/window[.]c)'

gcovr=$(command -v gcovr) || {
  gcovr=build/venv-coverage/bin/gcovr
  [ -x "$gcovr" ] || { python3 -m venv build/venv-coverage && build/venv-coverage/bin/pip install --quiet gcovr==8.3; } || exit 2
}
cmake -S . -B "$build" -G "Unix Makefiles" --log-level=ERROR -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1 -DCMAKE_CXX_FLAGS_DEBUG=-O1 \
  -DMI_BUILD_TESTS=ON -DMI_COVERAGE=ON -DMI_BUILD_SHARED=OFF -DMI_BUILD_OBJECT=OFF -DMI_OVERRIDE=OFF \
  "-DMI_TEST_KINDS=unit;api;modes;fault;fuzz;stress" > /dev/null || exit 2
cmake --build "$build" --parallel "$jobs" > /dev/null || exit 2
find "$build" -name '*.gcda' -delete
ctest --test-dir "$build" --parallel "$jobs" -R "$tests" || echo "coverage.sh: some tests failed; what they ran counts"

report() { # FILTER [OPTION ...]
  filter=$1
  shift
  "$gcovr" --root . --filter "$filter" --exclude "$left_out" --gcov-ignore-parse-errors=all --merge-mode-functions=merge-use-line-min \
    "$@" "$build"
}

status=0
for layer in arena page heap; do
  report "src/$layer/" --txt "$build/$layer.txt" --fail-under-line $share || status=1
  tail -n +4 "$build/$layer.txt"
done
report 'src/(arena|page|heap)/' --html-details "$build/index.html"
exit $status

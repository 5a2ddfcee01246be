#!/bin/sh
# The share of lines of each file of arena, page and heap that tests run: `make coverage`.
#
#   scripts/coverage.sh BUILD [--jobs N] [--tests REGEX]      BUILD is made, without checks of blocks
#
# gcov counts, and gcovr (from PyPI, in build/venv-coverage, or on the PATH) reports: build/coverage/index.html has the lines.
# Assertions that do not fail and probes are no lines of their own.  Exit status 1: a layer is below what is asked.
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

gcovr=$(command -v gcovr) || {
  gcovr=build/venv-coverage/bin/gcovr
  [ -x "$gcovr" ] || { python3 -m venv build/venv-coverage && build/venv-coverage/bin/pip install --quiet gcovr==8.3; } || exit 2
}
# With NDEBUG, and with the checks that tests of internals expect: MI_DEBUG=0 is the library of users.
cmake -S . -B "$build" --log-level=ERROR -DCMAKE_BUILD_TYPE=Release -DMI_BUILD_TESTS=ON -DMI_COVERAGE=ON -DMI_BUILD_SHARED=OFF \
  -DMI_BUILD_OBJECT=OFF -DMI_OVERRIDE=OFF "-DMI_TEST_KINDS=unit;api;modes;fault;fuzz;stress" > /dev/null || exit 2
cmake --build "$build" --parallel "$jobs" > /dev/null || exit 2
find "$build" -name '*.gcda' -delete
ctest --test-dir "$build" --parallel "$jobs" -R "$tests" || echo "coverage.sh: some tests failed; what they ran counts"
status=0
for layer in arena page heap; do
  "$gcovr" --root . --filter "src/$layer/" --object-directory "$build" --exclude-throw-branches --merge-mode-functions=merge-use-line-min \
    --exclude-lines-by-pattern '.*(mi_assert|MI_PROBE).*' --txt "$build/$layer.txt" --fail-under-line $share --gcov-ignore-parse-errors=all \
    "$build" || status=1
  tail -n +4 "$build/$layer.txt"
done
"$gcovr" --root . --filter 'src/(arena|page|heap)/' --object-directory "$build" --html-details "$build/index.html" \
  --merge-mode-functions=merge-use-line-min --gcov-ignore-parse-errors=all "$build"
exit $status

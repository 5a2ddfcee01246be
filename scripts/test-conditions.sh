#!/bin/sh
# Runs the quick tests of the release build as other machines would: `make test-conditions`.  Exit status 1: one failed.
#
#   scripts/test-conditions.sh BUILD [CONDITION ...]
#
#   old-processor   glibc chooses its functions for a processor without AVX-512, AVX2 and BMI (GLIBC_TUNABLES)
#   one-processor   all threads share one processor (taskset)
#   loaded          50 processes compute besides
#   no-root         a user without privileges, in a copy of the build; only where root starts it
#
# The tests are those labelled unit, api, override, preload, fault and fuzz, and the quick ones of modes.
set -u
cd "$(dirname "$0")/.." || exit 2
build=$(cd "${1:?usage: test-conditions.sh BUILD [CONDITION ...]}" && pwd) || exit 2
shift
[ $# -gt 0 ] || set -- old-processor one-processor loaded no-root

LABELS='unit|api|override|preload|fault|fuzz|modes'
# Those that take more than 20 seconds of a processor, and those that are about the machine's speed.
LONG='modes-(fork|fork-heaps|fork-heap-end|guarded|thread-late|mappings|producer-consumer)|preload-cliffs|override-replaced|api-table|stress'
JOBS=${JOBS:-2}
failed=

select_tests() { # what ctest is told; MI_TEST_SELECT=REGEX: only these
  printf '%s\n' "-L" "$LABELS" "-E" "$LONG" "--parallel" "$JOBS" "--output-on-failure" "--no-tests=error"
  [ -z "${MI_TEST_SELECT:-}" ] || printf '%s\n' "-R" "$MI_TEST_SELECT"
}

run_tests() { # DIRECTORY [COMMAND ...]: ctest there, by that command
  directory=$1
  shift
  # shellcheck disable=SC2046 # no word has a blank in it
  "$@" ctest --test-dir "$directory" $(select_tests)
}

as_nobody() {
  setpriv --reuid=nobody --regid=nogroup --clear-groups --no-new-privs "$@"
}

# Leaves out the tests that start an interpreter which is root's own.
leave_out_of_root() {
  python=$(sed -n 's/^_*Python3_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt" | head -n 1)
  { [ -n "$python" ] && ! as_nobody test -x "$python"; } || return 0
  echo "skipped: no-root: tests that start $python, which only root can"
  for name in $(ctest --test-dir "$build" -N -V | awk -v python="$python" \
    '/Test command: / { has = index($0, python) } /^ *Test *#/ { if (has) print $3; has = 0 }'); do
    LONG="$LONG|^$name\$"
  done
}

without_root() {
  command -v setpriv > /dev/null || { echo "skipped: no-root: there is no setpriv"; return 0; }
  [ "$(id -u)" = 0 ] || { echo "skipped: no-root: the user is none already, so that all others were"; return 0; }
  copy=$(mktemp -d) || return 1
  long_before=$LONG
  leave_out_of_root
  # Names of files in the build are those of this place: the copy takes it, in a namespace of its own.
  cp -a "$build" "$copy/build" && chown -R nobody "$copy" && chmod 755 "$copy"
  unshare --mount sh -c 'mount --bind "$1/build" "$2" && shift 2 && exec "$@"' sh "$copy" "$build" \
    env HOME="$copy" TMPDIR="$copy" setpriv --reuid=nobody --regid=nogroup --clear-groups --no-new-privs \
    ctest --test-dir "$build" $(select_tests) # no word has a blank in it
  status=$?
  LONG=$long_before
  rm -rf "$copy"
  return $status
}

loaded() {
  pids=
  for _ in $(seq 50); do
    nice -n 5 sh -c 'while :; do :; done' &
    pids="$pids $!"
  done
  trap 'kill $pids 2> /dev/null' EXIT INT TERM
  run_tests "$build" env
  status=$?
  kill $pids
  trap - EXIT INT TERM
  return $status
}

for condition in "$@"; do
  echo "=== $condition"
  case $condition in
    old-processor)
      hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD,-AVX2,-AVX2_Usable,-BMI1,-BMI2,-ERMS,-FSRM
      run_tests "$build" env GLIBC_TUNABLES="glibc.cpu.hwcaps=$hwcaps" ;;
    one-processor) run_tests "$build" taskset -c "$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')" ;;
    loaded) loaded ;;
    no-root) without_root ;;
    *) echo "no such condition: $condition" >&2; exit 2 ;;
  esac || failed="$failed $condition"
done
[ -z "$failed" ] || { echo "FAILED:$failed"; exit 1; }
echo "passed: $*"

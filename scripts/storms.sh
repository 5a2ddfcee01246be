#!/bin/sh
# Runs storms at their full size: 10^4 forks, 10^5 threads, 10^4 heaps, 10^5 signals, 10^4 times dlopen, exits on all paths by the
# hundreds.  Each test asserts that memory and mappings stay bounded.
#
#   scripts/storms.sh BUILD_DIRECTORY            of the release build
#   scripts/storms.sh --strict BUILD_DIRECTORY   other tests, in a system that counts all memory that is mapped (overcommit_memory=2).
#                                                That is a setting of the whole machine, needs root, and is put back at the end.
set -u
strict=no
[ "${1:-}" = --strict ] && { strict=yes; shift; }
[ $# -eq 1 ] || { sed -n '2,8p' "$0" >&2; exit 2; }
build=$1
failed=
setting=/proc/sys/vm/overcommit_memory

# run SCALE TEST: so many times the work of the suite
run() {
  echo "$2, $1 times its usual size"
  MI_TEST_SCALE=$1 ctest --test-dir "$build" -R "^$2\$" --no-tests=error --timeout 3600 --output-on-failure --quiet ||
    failed="$failed $2"
}

run_all() {
  run 34 storms-forks-shared
  run 50 storms-threads-shared
  run 20 storms-heaps-shared
  run 10 storms-signals-shared
  run 10 storms-mappings-shared
  run 2 storms-forks
  run 5 storms-threads
  run 10 modes-fork-shared
  run 10 modes-fork-heaps-shared
  run 10 modes-exit-shared
  run 50 modes-thread-exit-shared
  run 10 preload-dlopen
  run 10 preload-unload
  run 1 programs-limits
  run 5 storms-contained
}

# The setting is put back however this ends, unless it is killed outright.
run_strict() {
  [ -w "$setting" ] || { echo "skipped: $setting cannot be written" >&2; exit 77; }
  before=$(cat "$setting")
  trap 'echo "$before" > "$setting"' EXIT
  trap 'exit 1' HUP INT TERM
  echo 2 > "$setting" || exit 77
  run 1 api-basic-shared
  run 1 modes-mappings-shared
  run 1 modes-address-space-shared
  run 1 modes-idle-memory-shared
  run 1 stress-stress-shared
  run 1 storms-forks-shared
  run 1 storms-threads-shared
}

if [ $strict = yes ]; then run_strict; else run_all; fi
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
echo "no failure"

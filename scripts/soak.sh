#!/bin/sh
# Runs the tests with chance in them again and again, with another seed and more work each time: models, fuzzing, stress, forks,
# threads, storms.  Beside them one process lives for the whole time (test/storms/test-soak.c), and checks memory and statistics in
# each of its pauses.  Between the rounds recorded traces are replayed, and the sequences of bench/sequences.h: the peak of each must
# stay what it was in the first round.
#
#   scripts/soak.sh [MINUTES] BUILD_DIRECTORY ...
#
#   SOAK_PROGRAMS   where trace-replay, trace-record and bounds are; without it, no traces and sequences
#   SOAK_LIBRARY    the shared library for those
#   SOAK_TRACES     which (bench/traces), of those whose programs are installed: "gcc git python perl lua bash jq sqlite"
#
# Ends at the first failure, which it shows with its seed: MI_TEST_SEED=<seed> MI_TEST_SCALE=<scale> ctest ... repeats it.
set -u
minutes=30
case "${1:-}" in [0-9]*) minutes=$1; shift ;; esac
[ $# -gt 0 ] || { sed -n '7,14p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
traces=${SOAK_TRACES:-gcc git python perl lua bash jq sqlite}
library=${SOAK_LIBRARY:-}
export BENCH_PROGRAMS="${SOAK_PROGRAMS:-}"
end=$(($(date +%s) + minutes * 60))
work=$(mktemp -d)
resident=

finish() {
  [ -z "$resident" ] || kill "$resident" 2> /dev/null
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# ---- one process for the whole time -------------------------------------------------------------------------------------

begin_resident() {
  MI_SOAK_SECONDS=$((minutes * 60)) MI_TEST_SEED=$(date +%s) "$1/test/test-storms-soak-shared" > "$work/resident" 2>&1 &
  resident=$!
}

# Has it failed?  It ends by itself.
expect_resident() {
  kill -0 "$resident" 2> /dev/null && return
  wait "$resident" || { cat "$work/resident"; echo "failed: test-storms-soak-shared"; exit 1; }
}

# ---- traces and sequences -----------------------------------------------------------------------------------------------

# choose_traces: those that can be recorded here.
choose_traces() {
  chosen=
  for name in $traces; do
    if why=$("$root/bench/traces/$name" check 2>&1) && why=$("$root/bench/traces/$name" setup 2>&1); then chosen="$chosen $name"
    else echo "skipped: trace $name: $(echo "$why" | tail -n 1)"; fi
  done
}

# measured NAME COMMAND...: the peak may be a quarter and 8 MiB above that of the first time
measured() {
  name=$1
  shift
  rm -f "$work/cost"
  python3 "$root/bench/real/measure.py" "$work/cost" "$@" > "$work/output" 2>&1 || { cat "$work/output"; echo "failed: $name"; exit 1; }
  peak=$(sed -n 's/.*peak_kib=\([0-9]*\).*/\1/p' "$work/cost")
  [ -f "$work/peak-$name" ] || echo "$peak" > "$work/peak-$name"
  first=$(cat "$work/peak-$name")
  [ "$peak" -le $((first * 5 / 4 + 8192)) ] || { echo "failed: $name has a peak of $peak KiB, $first in the first round"; exit 1; }
  peaks="$peaks $name $((peak / 1024))"
}

replay_all() {
  peaks=
  for name in $chosen; do measured "trace-$name" env "BENCH_PRELOAD=$library" "$root/bench/traces/$name" run page; done
  for name in steps steps-down swings comb server; do
    measured "$name" env "LD_PRELOAD=$library" "$BENCH_PROGRAMS/bounds" "$name" 32
  done
  echo "round $round, peaks in MiB:$peaks"
}

# ---- rounds -------------------------------------------------------------------------------------------------------------

begin_resident "$1"
[ -z "$BENCH_PROGRAMS" ] || choose_traces
round=0
while [ "$(date +%s)" -lt "$end" ]; do
  round=$((round + 1))
  MI_TEST_SEED=$(date +%s)$round
  MI_TEST_SCALE=$((round < 10 ? round : 10))
  export MI_TEST_SEED MI_TEST_SCALE
  for build in "$@"; do
    echo "round $round, $build: MI_TEST_SEED=$MI_TEST_SEED MI_TEST_SCALE=$MI_TEST_SCALE"
    ctest --test-dir "$build" -L '^(fuzz|stress|storms|modes|model)$' --timeout 3600 --output-on-failure --quiet || {
      echo "failed with MI_TEST_SEED=$MI_TEST_SEED MI_TEST_SCALE=$MI_TEST_SCALE in $build"
      exit 1
    }
    expect_resident
  done
  [ -z "$BENCH_PROGRAMS" ] || replay_all
done
kill -0 "$resident" 2> /dev/null && wait "$resident"
tail -n 8 "$work/resident"
grep -q ', 0 failed' "$work/resident" || { echo "failed: test-storms-soak-shared"; exit 1; }
resident=
echo "$round rounds without a failure"

#!/bin/sh
# Factors a number twice with the same program: with this allocator preloaded, showing its statistics, and with the
# system's malloc; then shows what both runs cost, side by side.
#
#   demo/run-demo.sh [--runs N] BUILD_DIRECTORY [NUMBER]
#
# With N > 1 the runs alternate and the table has the median of each column.
set -eu

runs=1
if [ "${1:-}" = --runs ]; then runs=$2; shift 2; fi
case $runs in '' | 0 | *[!0-9]*) echo "run-demo.sh: '$runs' is no number of runs" >&2; exit 2 ;; esac
build=${1:?usage: run-demo.sh [--runs N] BUILD_DIRECTORY [NUMBER]}
number=${2:-175451865205073170563711388363}

# Names that are relative to the build: those of LD_PRELOAD can have no space, and demo-measure takes one with `=` for a variable.
cd "$build"
program=./demo/demo-cfrac
measure=./demo/demo-measure
library=./libmimalloc.so
for file in "$program" "$measure" "$library"; do
  [ -e "$file" ] || { echo "run-demo.sh: $build/$file is missing; build the targets 'demo' and 'mimalloc' first" >&2; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# Standard output goes to the file $1, standard error to $2.  Status 1 of the program says that the number is a prime.
measured() {
  out=$1 err=$2 status=0
  shift 2
  "$measure" "$@" "$program" "$number" > "$out" 2> "$err" || status=$?
  [ "$status" -le 1 ] || { cat "$err" >&2; exit "$status"; }
}

echo "== $(basename "$program") $number, with mimalloc =="
measured "$work/out.ours" "$work/stats" "$work/ours" "LD_PRELOAD=$library" MIMALLOC_SHOW_STATS=1
cat "$work/out.ours"
echo
cat "$work/stats"
grep -q 'stats' "$work/stats" || { echo "run-demo.sh: the program ran without mimalloc" >&2; exit 1; }
echo
echo "== the same program with the system's malloc =="
measured "$work/out.system" "$work/err.system" "$work/system"
cat "$work/out.system"

run=1
while [ "$run" -lt "$runs" ]; do
  measured "$work/again" "$work/err.again" "$work/ours" "LD_PRELOAD=$library"
  measured "$work/again" "$work/err.again" "$work/system"
  run=$((run + 1))
done

# Column $2 of file $1: its median.
median() { cut -d' ' -f"$2" "$1" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

row() { # label, column, divisor, format
  awk -v label="$1" -v a="$(median "$work/ours" "$2")" -v b="$(median "$work/system" "$2")" -v d="$3" -v f="$4" 'BEGIN {
    printf "  %-22s %14s %14s %12s\n", label, sprintf(f, a / d), sprintf(f, b / d), (b > 0 ? sprintf("%.2f", a / b) : "-") }'
}

echo
if [ "$runs" -gt 1 ]; then echo "medians of $runs runs"; fi
printf '  %-22s %14s %14s %12s\n' '' mimalloc system 'mimalloc/system'
row 'time, seconds' 1 1 '%.2f'
row 'of it in user mode' 2 1 '%.2f'
row 'peak memory, KiB' 4 1 '%.0f'
row 'page faults' 5 1 '%.0f'

# The factors do not depend on the allocator.  Lines that tell the time do.
if ! grep -v -i -e time -e second -e ' ms' "$work/out.ours" > "$work/a"; then :; fi
if ! grep -v -i -e time -e second -e ' ms' "$work/out.system" > "$work/b"; then :; fi
cmp -s "$work/a" "$work/b" || { echo "run-demo.sh: the two runs gave different results" >&2; exit 1; }

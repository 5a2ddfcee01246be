#!/bin/sh
# Runs each target of libFuzzer for MINUTES, one after the other, from the inputs in the tree and those that earlier runs found.
#
#   scripts/fuzz.sh MINUTES BUILD [TARGET ...]     BUILD: of the preset clang-asan
#   scripts/fuzz.sh keep BUILD [TARGET ...]        replaces the inputs in the tree by fewer that reach the same code
#
# New inputs are kept in BUILD/inputs/TARGET.  Ends at the first failure, and says which input shows it.
set -u
[ $# -ge 2 ] || { sed -n '2,7p' "$0" >&2; exit 2; }
what=$1
build=$2
shift 2
corpus=$(cd "$(dirname "$0")/.." && pwd)/test/fuzz/corpus
[ $# -gt 0 ] || set -- $(ls "$corpus")

# Inputs of more than some hundred bytes are rarely what one reads.
fuzz_keep() {
  rm -rf "$found.kept" && mkdir -p "$found.kept"
  "$program" -set_cover_merge=1 -max_len=400 "$found.kept" "$found" "$corpus/$target" > "$log" 2>&1 || return 1
  rm -f "$corpus/$target"/* && cp "$found.kept"/* "$corpus/$target/"
  echo "$target: $(ls "$corpus/$target" | wc -l) inputs, $(cat "$corpus/$target"/* | wc -c) bytes"
}

fuzz_run() {
  "$program" -max_total_time=$((what * 60)) -max_len=4096 -rss_limit_mb=1536 -artifact_prefix="$found-" \
    -print_final_stats=1 "$found" "$corpus/$target" > "$log" 2>&1 || return 1
  echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions," \
    "$(sed -n 's/^stat::peak_rss_mb: *//p' "$log") MiB, $(ls "$found" | wc -l) inputs found"
}

for target in "$@"; do
  program=$build/test/fuzz-$target
  found=$build/inputs/$target
  log=$found.log
  mkdir -p "$found"
  if [ "$what" = keep ]; then fuzz_keep; else fuzz_run; fi || {
    tail -n 40 "$log"
    echo "failed: $program with the input above; the whole log is $log"
    exit 1
  }
done

#!/bin/sh
# Runs the tests with chance in them again and again, with another seed and more work each time.
#
#   scripts/soak.sh [MINUTES] BUILD_DIRECTORY ...
#
# Ends at the first failure, which it shows with its seed: MI_TEST_SEED=<seed> MI_TEST_SCALE=<scale> ctest ... repeats it.
set -u
minutes=30
case "${1:-}" in [0-9]*) minutes=$1; shift ;; esac
[ $# -gt 0 ] || { echo "usage: soak.sh [MINUTES] BUILD_DIRECTORY ..." >&2; exit 2; }

end=$(($(date +%s) + minutes * 60))
round=0
while [ "$(date +%s)" -lt "$end" ]; do
  round=$((round + 1))
  MI_TEST_SEED=$(date +%s)$round
  MI_TEST_SCALE=$((round < 10 ? round : 10))
  export MI_TEST_SEED MI_TEST_SCALE
  for build in "$@"; do
    echo "round $round, $build: MI_TEST_SEED=$MI_TEST_SEED MI_TEST_SCALE=$MI_TEST_SCALE"
    ctest --test-dir "$build" -L '^(fuzz|stress|modes|model)$' --timeout 3600 --output-on-failure --quiet || {
      echo "failed with MI_TEST_SEED=$MI_TEST_SEED MI_TEST_SCALE=$MI_TEST_SCALE in $build"
      exit 1
    }
  done
done
echo "$round rounds without a failure"

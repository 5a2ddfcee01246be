#!/bin/sh
# Runs a program for WASI: under node, or under wasmtime if MI_TEST_WASMTIME is set.
#
#   scripts/run-wasi.sh PROGRAM.wasm [ARGUMENT ...]
tests=$(dirname "$0")/../test/platforms
if [ -n "${MI_TEST_WASMTIME:-}" ]; then exec python3 "$tests/run_wasmtime.py" "$@"; fi
# Fast calls of node 20 use the memory as it was before it grew, and crash.
exec node --no-warnings --no-turbo-fast-api-calls "$tests/wasi.mjs" "$@"

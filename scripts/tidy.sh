#!/bin/sh
# clang-tidy over the library's sources, as configured in .clang-tidy.  Exit status 1: it found something.
#
#   scripts/tidy.sh BUILD_DIRECTORY     one that was configured with clang and has compile_commands.json
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:?usage: tidy.sh BUILD_DIRECTORY}
# The override file declares libc's names again, in ways of its own.
sources=$(find src -name '*.c' ! -name static.c ! -path '*/override/*' | sort)
clang-tidy-19 -p "$build" --quiet --warnings-as-errors='*' $sources 2> /dev/null

#!/bin/sh
# Is every C and C++ file laid out as .clang-format says?
#
#   scripts/format-check.sh          lists the files that are not, with the first differences; exit status 1
#   scripts/format-check.sh --fix    lays them out
#
# Versions of clang-format differ in what they do, so it must be this one.  Where it cannot be had the check is skipped
# (exit status 77).
set -u
cd "$(dirname "$0")/.." || exit 2

tool=clang-format-19
if ! command -v $tool > /dev/null 2>&1 && ! scripts/need.sh $tool > /dev/null 2>&1; then
  echo "SKIP format-check: $tool cannot be installed here"
  exit 77
fi

files=$(find src demo test bench tools nim/csource/*.c -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' | sort)
# #pragma once suffices; with a guard behind it clang-format would indent all of the file.
twice_guarded=$(grep -l '^#pragma once$' $files | xargs -r grep -l '^#ifndef .*_H$')
if [ "${1:-}" = --fix ]; then
  [ -z "$twice_guarded" ] || perl -0pi -e \
    's/^#pragma once\n#ifndef (\w+_H)\n *#define \1\n/#pragma once\n/m and s/\n+#endif[^\n]*\n+\z/\n/' $twice_guarded
  for file in $files; do
    pass=0 # it does not always arrive in one step
    until $tool "$file" | cmp -s - "$file" || [ $pass -ge 20 ]; do
      $tool -i "$file"
      pass=$((pass + 1))
    done
  done
  exit 0
fi
if [ -n "$twice_guarded" ]; then
  echo "an include guard beside #pragma once, in:" $twice_guarded
  echo "'make format' removes it"
  exit 1
fi

# One process for all files: to start it takes longer than most files do.
said=$($tool --dry-run -Werror $files 2>&1) && exit 0
bad=$(printf '%s\n' "$said" | sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: error: code should be clang-formatted.*/\1/p' | sort -u)
if [ -z "$bad" ]; then
  printf '%s\n' "$said"
  exit 1
fi
for file in $bad; do
  echo "$file: not as .clang-format says:"
  $tool "$file" | diff -u "$file" - | sed -n 3,12p
done
echo "$(echo "$bad" | wc -l) files; 'make format' lays them out"
exit 1

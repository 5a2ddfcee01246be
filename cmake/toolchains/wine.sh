#!/bin/sh
# Runs a Windows program:  wine.sh DIRECTORY PROGRAM ARGUMENT ...
#
# DIRECTORY is where the library was built: mimalloc.dll is found there, and the files of wine (700 MB, made at the first use)
# lie in DIRECTORY/wine, unless WINEPREFIX says otherwise.
set -u
directory=$1
shift
WINEPREFIX=${WINEPREFIX:-$directory/wine}
WINEDEBUG=${WINEDEBUG:--all}
WINEPATH="Z:$(printf %s "$directory" | tr / '\\')"
export WINEPREFIX WINEDEBUG WINEPATH
unset DISPLAY WAYLAND_DISPLAY

if [ ! -e "$WINEPREFIX/system.reg" ]; then
  mkdir -p "$WINEPREFIX"
  (
    flock 9 # tests run side by side, and one makes the prefix
    [ -e "$WINEPREFIX/system.reg" ] || { wineboot --init > /dev/null 2>&1 && wineserver --wait; }
  ) 9> "$WINEPREFIX.lock"
fi
exec wine "$@"

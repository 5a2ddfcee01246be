#!/bin/sh
# Makes sure that tools are there, or says what is missing.
#
#   scripts/need.sh NEED ...        NEED is PACKAGE or PACKAGE:COMMAND
#
# A need is met when COMMAND (by default the name of the package) is on the PATH, or when the Debian package is
# installed.  What is not met is installed, if we are root and there is apt-get.  Exit status 1: something is missing.
set -u

is_met() {
  command -v "${1#*:}" > /dev/null 2>&1 && return 0
  dpkg-query -W -f '${Status}\n' "${1%%:*}" 2> /dev/null | grep -q '^install ok installed'
}

missing=
for need in "$@"; do
  is_met "$need" || missing="$missing ${need%%:*}"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null 2>&1; then
  echo "need.sh: installing$missing"
  export DEBIAN_FRONTEND=noninteractive
  # Package lists may be missing or old: refresh them only when the first attempt fails.
  install() { apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=300 $missing; }
  log=$(mktemp)
  if install > "$log" 2>&1 || { apt-get update -q -o DPkg::Lock::Timeout=300 > "$log" 2>&1; install >> "$log" 2>&1; }; then
    rm -f "$log"
    exit 0
  fi
  tail -n 5 "$log" >&2
  rm -f "$log"
fi
echo "need.sh: missing:$missing" >&2
echo "need.sh: on Debian: apt-get install$missing" >&2
exit 1

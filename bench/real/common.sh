# What the scripts of this folder share; each sources it, defines what follows, and ends in: bench_main "$@"
#
#   needs=(PACKAGE:COMMAND...)   what must be installed, as for scripts/need.sh
#   prepare                      makes the input data in $data, through `generate`; `:` where there is none
#   measured ARGS...             the measured run: ends in `exec_measured PROGRAM...`, or uses `measure PROGRAM...`
#   obstacle                     optional: prints why the workload cannot run here although its packages are there
#
# A script is called as
#
#   NAME check        exit code 0: it can run here; else one line says why not
#   NAME setup        installs packages if it may, and makes the data; what is there is kept
#   NAME run ARGS...  the measured run. Prints a result that depends on ARGS and the data alone; exit code 1 if that
#                     cannot be had
#
# Only the program under test is preloaded with BENCH_PRELOAD, the absolute path of a library; empty or unset: with
# none, which leaves the system's malloc. Data is kept under BENCH_DATA, by default build/bench-data.
#
# The cost of a run is that of the process that the script becomes (exec_measured). Where more must be done after the
# program or beside it, it is the line that `measure` writes to the file BENCH_COST:
#   cost cpu_s=SECONDS wall_s=SECONDS peak_kib=KIB faults=N major_faults=N
set -u -o pipefail
export LC_ALL=C.UTF-8
unset LD_PRELOAD LUA_INIT RUBYOPT PERL5OPT NODE_OPTIONS

# Without other processes where possible: a run's own cost begins here.
name=${0##*/}
here=${0%/*}
[ "${here#/}" != "$here" ] || here=$PWD/$here
root=$here/../..
data=${BENCH_DATA:-$root/build/bench-data}/$name
[ "${data#/}" != "$data" ] || data=$PWD/$data
# How a program is started with the allocator.
with_allocator=(env -u LD_PRELOAD)
use_allocator() { [ -z "$1" ] || with_allocator=(env "LD_PRELOAD=$1"); }
use_allocator "${BENCH_PRELOAD:-}"

fail() {
  echo "$name: $*" >&2
  exit 1
}

# Makes $data/FILE of what COMMAND prints, unless it is there and not older than the script.
#   generate FILE COMMAND...
generate() {
  local file=$data/$1
  shift
  [ -s "$file" ] && [ ! "$0" -nt "$file" ] && return
  mkdir -p "$data"
  "$@" >"$file.new" && mv "$file.new" "$file" || fail "cannot make $file"
}

# The path of an input file.
input() {
  [ -s "$data/$1" ] || fail "no $data/$1: run '$name setup'"
  echo "$data/$1"
}

# A folder for the files of one run, in memory where that can be; removed when the script ends.
make_scratch() {
  local in=$data
  [ -w /dev/shm ] && in=/dev/shm
  mkdir -p "$data"
  scratch=$(mktemp -d "$in/bench-$name.XXXXXX") || fail "cannot make a folder for temporary files"
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 1' HUP INT TERM
}

exec_measured() { exec "${with_allocator[@]}" "$@"; }

# The path of a program as it is after all links and wrappers: what is to be measured is not a shell that looks for it.
program() { readlink -f "$(type -P "$1")"; }

# Runs a program with the allocator, and writes what it and the processes that it waited for cost.
measure() { python3 "$here/measure.py" "${BENCH_COST:-/dev/null}" "${with_allocator[@]}" "$@"; }

check() {
  local need
  for need in "${needs[@]}"; do
    command -v "${need#*:}" >/dev/null || { echo "there is no ${need#*:}; Debian package: ${need%%:*}"; return 1; }
  done
  if declare -F obstacle >/dev/null; then
    local why
    why=$(obstacle)
    [ -z "$why" ] || { echo "$why"; return 1; }
  fi
}

bench_main() {
  case $#:${1:-} in
    1:check) check ;;
    1:setup)
      "$root/scripts/need.sh" python3 "${needs[@]}" && prepare
      ;;
    [2-9]:run)
      shift
      [ -z "${BENCH_PRELOAD:-}" ] || [ -f "$BENCH_PRELOAD" ] || fail "no such library: $BENCH_PRELOAD"
      measured "$@"
      ;;
    *)
      echo "usage: $name check | setup | run ARGS..." >&2
      exit 2
      ;;
  esac
}

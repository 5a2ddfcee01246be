# What the scripts of this folder share. Each records one program, and its test replays the trace; it has the commands of
# the scripts in real/, and the same names. It sources this file, defines what follows, and ends in: bench_main "$@"
#
#   needs=(PACKAGE:COMMAND...)   what must be installed
#   work                         runs the program, as `recorded PROGRAM ARGS...` or `start_recorded PROGRAM ARGS...`, in
#                                an empty folder; its output goes to a file
#
# `setup` records the trace, if it is not there or is older than the script, the inputs or the format. `run TOUCH` replays it; TOUCH is the
# argument of trace-replay's --touch. Traces are in BENCH_DATA/traces, by default build/bench-data/traces.
. "${0%/*}/../real/common.sh"
data=${data%/*}/traces
trace=$data/$name.trace
programs=${BENCH_PROGRAMS:-$root/build/user/bench}
inputs=$here/inputs.py
with_recorder=(env "LD_PRELOAD=$(readlink -f "$programs")/trace-record.so" "TRACE_FILE=$trace.new" TRACE_LIMIT=64M)

recorded() { "${with_recorder[@]}" "$@"; }

# The same for a server, whose process is then $server.
start_recorded() {
  "${with_recorder[@]}" "$@" &
  server=$!
  trap 'kill "$server" 2>/dev/null' EXIT
}

# Waits until something listens on a port of this machine.
until_listening() {
  local i
  for i in {1..200}; do
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
    sleep 0.05
  done
  fail "nothing listens on port $1"
}

is_recorded() {
  local file
  [ -s "$trace" ] || return
  for file in "$0" "$inputs" "$root/bench/trace/trace.h"; do [ ! "$file" -nt "$trace" ] || return; done
}

prepare() {
  is_recorded && return
  [ -x "$programs/trace-replay" ] || fail "no $programs/trace-replay (the target 'bench' builds it)"
  make_scratch
  rm -f "$trace.new"
  (cd "$scratch" && work >"$data/$name.log" 2>&1) || { tail -n 3 "$data/$name.log" >&2; fail "the program to record fails"; }
  "$programs/trace-replay" --info "$trace.new" && mv "$trace.new" "$trace" || fail "cannot make $trace"
}

measured() { exec_measured "$programs/trace-replay" "--touch=$1" "$trace"; }

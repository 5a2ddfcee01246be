#!/bin/sh
# Runs a program of another processor under qemu's user-mode emulation, so that it can start programs of its processor in turn.
#
#   scripts/run-emulated.sh EMULATOR PREFIX PROGRAM [ARGUMENT ...]
#
# PREFIX has the loader and the libraries of that processor.  The kernel starts programs that the program executes, itself again
# for instance, by EMULATOR: in a user namespace of its own, which nothing else on the machine sees (unshare, binfmt_misc).  Where
# the kernel (before 6.7) or a sandbox does not allow that, the program runs with MI_TEST_NO_EXEC=1, and tests that have to
# start programs say that they are skipped.  MI_TEST_PRELOAD is the program's LD_PRELOAD, not the emulator's.  Memory of emulated
# programs cannot be measured (MI_TEST_NO_RSS); the emulator may need much more than they do, and is the first to go when memory
# becomes short.
set -u

emulator=$(command -v "$1") || { echo "run-emulated.sh: no $1" >&2; exit 127; }
export QEMU_LD_PREFIX="$2" MI_TEST_NO_RSS=1 MI_TEST_EMULATED=1
shift 2
{ echo 1000 > /proc/self/oom_score_adj; } 2> /dev/null

# Class, byte order and machine as the program's header has them; any kind of system, and position-independent or not.
rule() {
  set -- $(od -An -v -tx1 -N20 "$1")
  [ "$1$2$3$4" = 7f454c46 ] || return 1
  type='\x02\x00' types='\xfe\xff'
  [ "$6" = 02 ] && type='\x00\x02' types='\xff\xfe'
  zeros='\x00\x00\x00\x00\x00\x00\x00\x00\x00' ones='\xff\xff\xff\xff\xff\xff\xff\xff'
  printf '%s' ":emulated:M::\\x7fELF\\x$5\\x$6\\x01$zeros$type\\x${19}\\x${20}:"
  printf '%s' "\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00$ones$types\\xff\\xff:$emulator:P"
}

program=$1
[ -n "${MI_TEST_PRELOAD:-}" ] && set -- -E "LD_PRELOAD=$MI_TEST_PRELOAD" "$@"
unset MI_TEST_PRELOAD
if [ -n "${MI_TEST_NO_EXEC:-}" ]; then
  exec "$emulator" "$@"
fi
MI_EMULATED_RULE=$(rule "$program") || { echo "run-emulated.sh: $program is no program" >&2; exit 126; }
export MI_EMULATED_RULE
if unshare --user --map-root-user --mount true 2> /dev/null; then
  exec unshare --user --map-root-user --mount sh -c '
    { mount -t binfmt_misc none /proc/sys/fs/binfmt_misc &&
      printf %s "$MI_EMULATED_RULE" > /proc/sys/fs/binfmt_misc/register; } 2> /dev/null || export MI_TEST_NO_EXEC=1
    unset MI_EMULATED_RULE
    exec "$@"' sh "$emulator" "$@"
fi
unset MI_EMULATED_RULE
export MI_TEST_NO_EXEC=1
exec "$emulator" "$@"

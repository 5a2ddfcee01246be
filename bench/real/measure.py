#!/usr/bin/env python3
"""Runs a command and appends what it cost to a file, as one line.

  measure.py FILE COMMAND ARG...

  cost cpu_s=SECONDS wall_s=SECONDS peak_kib=KIB faults=N major_faults=N

That is the kernel's account of the process and of those that it waited for: user and system time of all threads, time
until its end, the largest peak of resident memory of one process, minor and major page faults. Exit code: the command's.
"""

import ctypes
import fcntl
import os
import sys
import time

PR_SET_CHILD_SUBREAPER = 36

# The process is started by a shell that ends at once, and is inherited from it: a direct child would begin with the
# peak of this interpreter. The shell tells its number (9); the process waits for a line (7), since the shell could
# otherwise outlive it, and reap it. It gets our stdin (8), which a process in the background of a shell has not.
START = '{ read -r _ <&7; exec "$@" <&8 7<&- 8<&- 9>&-; } & echo $! >&9'


def pipe_above_9():
    return tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in os.pipe())


def start(command):
    """Gives the number of the process, and the file that lets it go."""
    number_out, number_in = pipe_above_9()
    go_out, go_in = pipe_above_9()
    actions = [(os.POSIX_SPAWN_DUP2, go_out, 7), (os.POSIX_SPAWN_DUP2, 0, 8), (os.POSIX_SPAWN_DUP2, number_in, 9)]
    shell = os.posix_spawn("/bin/sh", ["/bin/sh", "-c", START, "sh", *command], os.environ, file_actions=actions)
    os.close(number_in)
    os.waitpid(shell, 0)
    return int(os.read(number_out, 100)), go_in


def main():
    file, command = sys.argv[1], sys.argv[2:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    pid, go_in = start(command)
    start_s = time.perf_counter()
    os.write(go_in, b"\n")
    _, status, usage = os.wait4(pid, 0)
    wall_s = time.perf_counter() - start_s
    with open(file, "a") as cost:
        cost.write(f"cost cpu_s={usage.ru_utime + usage.ru_stime:.6f} wall_s={wall_s:.6f} "
                   f"peak_kib={usage.ru_maxrss} faults={usage.ru_minflt} major_faults={usage.ru_majflt}\n")
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()

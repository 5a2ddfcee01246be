"""Programs that are confined while they run."""

from outcome import Skipped
from registry import program

WORK = ('import hashlib, json, threading; t = {str(i): "x" * (i % 90) for i in range(20000)}; s = json.dumps(t); '
        'print(len(s), hashlib.sha256(s.encode()).hexdigest()); '
        'r = []; T = [threading.Thread(target=lambda n=n: r.append(len([str(i) for i in range(n)]))) for n in (1000, 2000, 3000)]; '
        '[x.start() for x in T]; [x.join() for x in T]; print(sorted(r))')


def confined_python(session, argv, least_processes):
    """Python below a program that confines it; skipped where this system does not let it."""
    if session.run([*argv, "/bin/true"], False, is_counted=False).status != 0:
        raise Skipped(f"{argv[0]} may not confine programs here")
    command = [*argv, "/usr/bin/python3", "-c", WORK]
    env = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
    session.both(command, env=env)
    session.served(command, env=env, least_pages=100, least_processes=least_processes)


@program("bubblewrap:bwrap", "python3:/usr/bin/python3", quick=True)
def bubblewrap(session):
    """bubblewrap: Python with names, processes and network of its own, an empty /proc and no home"""
    confined_python(session, ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/home"], 1)


@program("firejail", "python3:/usr/bin/python3")
def firejail(session):
    """firejail: Python under its seccomp filter, without capabilities and network"""
    confined_python(session, ["firejail", "--quiet", "--noprofile", "--seccomp", "--caps.drop=all", "--net=none", "--nonewprivs",
                              "--env=LD_PRELOAD=" + str(session.lib)], 1)

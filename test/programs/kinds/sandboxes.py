"""Programs that are confined while they run."""

from outcome import Skipped
from registry import program

WORK = ('import hashlib, json, threading; t = {str(i): "x" * (i % 90) for i in range(20000)}; s = json.dumps(t); '
        'print(len(s), hashlib.sha256(s.encode()).hexdigest()); '
        'r = []; T = [threading.Thread(target=lambda n=n: r.append(len([str(i) for i in range(n)]))) for n in (1000, 2000, 3000)]; '
        '[x.start() for x in T]; [x.join() for x in T]; print(sorted(r))')


def confined_python(session, confine):
    """Python below the command confine(preload); skipped where this system does not let programs be confined."""
    if session.run([*confine(False), "/bin/true"], False, is_counted=False).status != 0:
        raise Skipped(f"{confine(False)[0]} may not confine programs here")
    python = ["/usr/bin/python3", "-c", WORK]
    env = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
    session.same(lambda preload: session.must([*confine(preload), *python], preload, env=env).out)
    session.served([*confine(True), *python], env=env, least_pages=200)


@program("bubblewrap:bwrap", "python3:/usr/bin/python3", quick=True)
def bubblewrap(session):
    """bubblewrap: Python with names, processes and network of its own, no /proc and no home"""
    confined_python(session, lambda preload: ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--tmpfs", "/proc", "--dev",
                                              "/dev", "--tmpfs", "/home"])


@program("firejail", "python3:/usr/bin/python3")
def firejail(session):
    """firejail: Python under its seccomp filter, without capabilities and network"""
    # It is setuid: without root, the dynamic linker drops LD_PRELOAD before firejail starts.
    confined_python(session, lambda preload: ["firejail", "--quiet", "--noprofile", "--seccomp", "--caps.drop=all", "--net=none", "--nonewprivs",
                                              *([f"--env=LD_PRELOAD={session.lib}"] if preload else [])])

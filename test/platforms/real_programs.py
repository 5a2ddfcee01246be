#!/usr/bin/env python3
"""Real programs of arm64 with the library preloaded, under QEMU's user-mode emulation.

  test/platforms/real_programs.py arm64-programs

Debian's packages are fetched by apt with a configuration of its own, and unpacked into build/arm64-programs/root: nothing of them
is installed.  Each program does some work twice, as it is and with the library, and its output must be the same; then the
statistics of the library must show that it served the program.  Prints a line for each program, and writes
build/arm64-programs/Testing/results-arm64-programs.xml.  The exit status is 1 if a program failed."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "test/programs"), str(ROOT / "test")]
from outcome import FAILED, Failed, Skipped, outcome_of, write_results  # noqa: E402
from session import Session  # noqa: E402

PACKAGES = ("lua5.4", "python3", "perl", "sqlite3", "redis-server")
EMULATOR = "qemu-aarch64"
TIMEOUT = 300

# ---- the programs -------------------------------------------------------------------------------------------------------

LUA = r"""
local t = {}
for i = 1, 60000 do local k = (i * 7919) % 3001; t[k] = (t[k] or "") .. string.rep("v", i % 9) end
local n, sum = 0, 0
for k, v in pairs(t) do n = n + 1; sum = sum + k * #v end
print(n, sum)
local c = {}
for i = 1, 2000 do c[i] = coroutine.wrap(function() for j = 1, 3 do coroutine.yield(("x"):rep(i + j)) end end) end
local total = 0
for j = 1, 3 do for i = 1, 2000 do total = total + #c[i]() end end
collectgarbage()
print(total, (("%d,"):rep(3000)):format(table.unpack((function() local r = {} for i = 1, 3000 do r[i] = i * i end return r end)())):sub(-30))
"""

PYTHON = r"""
import collections, concurrent.futures, decimal, json, re, threading, zlib
table = {i: [str(j) * (j % 7) for j in range(i % 50)] for i in range(1500)}
text = json.dumps(table, sort_keys=True)
print(len(text), zlib.crc32(text.encode()), json.loads(text)["49"] == table[49])
print(collections.Counter(re.findall(r"\"(\d+)\"", text)).most_common(3))
print(zlib.crc32(zlib.decompress(zlib.compress(text.encode(), 6))))
decimal.getcontext().prec = 500
print(str(decimal.Decimal(2).sqrt())[-20:], str(3 ** 8000)[-10:])
def work(n): return sum(len(str(i) * (i % 100)) for i in range(n))
with concurrent.futures.ThreadPoolExecutor(4) as pool: print(list(pool.map(work, [3000] * 8)))
for _ in range(10):
    threads = [threading.Thread(target=work, args=(100,)) for _ in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
"""

PERL = r"""
my %h; for my $i (1 .. 40000) { my $k = ($i * 7919) % 5003; $h{$k} .= chr(65 + $i % 26) x ($i % 5); }
my @k = sort { length($h{$b}) <=> length($h{$a}) || $a <=> $b } keys %h;
my $text = join(",", map { "$_=$h{$_}" } sort { $a <=> $b } @k); my $n = 0;
$n++ while $text =~ /(\d+)=([A-M]+)/g; print scalar(@k), " $k[0] $n ", unpack("%32C*", $text), "\n";
my $pid = fork; if (!$pid) { my %c = map { $_ => "y" x $_ } 1 .. 1000; exit(scalar(keys %c) % 256); } waitpid($pid, 0); print $? >> 8, "\n";
"""

SQL = r"""
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
  INSERT INTO t SELECT i, printf('%0*d', i % 60 + 1, i), i / 7.0 FROM n;
CREATE INDEX tb ON t(b);
SELECT count(*), sum(length(b)), round(sum(c), 3) FROM t;
DELETE FROM t WHERE a % 3 = 0;
SELECT length(b), count(*), max(b) FROM t GROUP BY length(b) ORDER BY 2 DESC, 1 LIMIT 5;
SELECT group_concat(b) FROM (SELECT b FROM t ORDER BY b DESC LIMIT 3);
"""

REDIS = ["PING",
         "EVAL \"for i = 1, 8000 do redis.call('SET', 'k' .. i, string.rep('v', i % 300)); redis.call('HSET', 'h' .. (i % 50), i, i * i);"
         " redis.call('ZADD', 'z', i % 977, i); redis.call('RPUSH', 'l' .. (i % 9), i) end return redis.call('DBSIZE')\" 0",
         "STRLEN k299", "HLEN h7", "ZRANGE z 100 105 WITHSCORES", "LRANGE l3 0 5",
         "EVAL \"for i = 1, 8000, 2 do redis.call('DEL', 'k' .. i) end return redis.call('DBSIZE')\" 0",
         "APPEND k2 abcdef", "SORT l1 LIMIT 0 5 DESC", "SAVE", "DEBUG RELOAD", "DBSIZE", "DEBUG DIGEST"]


def lua(session):
    argv = session.program("usr/bin/lua5.4", "-e", LUA)
    session.both(argv, timeout=TIMEOUT)
    session.served(argv, least_pages=20, timeout=TIMEOUT)


def python(session):
    argv = session.program("usr/bin/python3.11", "-S", "-c", PYTHON)
    env = {"PYTHONHOME": str(session.root / "usr"), "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    session.both(argv, env=env, timeout=TIMEOUT)
    session.served(argv, env=env, least_pages=100, timeout=TIMEOUT)


def perl(session):
    argv = session.program("usr/bin/perl", "-e", PERL)
    session.both(argv, env={"PERL_HASH_SEED": "0"}, timeout=TIMEOUT)
    session.served(argv, env={"PERL_HASH_SEED": "0"}, least_pages=20, least_processes=2, timeout=TIMEOUT)


def sqlite(session):
    argv = session.program("usr/bin/sqlite3", "-batch", ":memory:")
    session.both(argv, stdin=SQL, timeout=TIMEOUT)
    session.served(argv, stdin=SQL, least_pages=10, timeout=TIMEOUT)


def redis_replies(path):
    """What the server answers, one command after the other; its answers end where the next one's begins."""
    text = b""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT)
        connection.connect(str(path))
        for command in REDIS:
            connection.sendall(f"{command}\r\nECHO end-of-reply\r\n".encode())
            while not text.endswith(b"$12\r\nend-of-reply\r\n"):
                got = connection.recv(65536)
                if not got:
                    raise Failed(f"redis-server closed the connection at {command[:40]}")
                text += got
            text += b"\n"
        connection.sendall(b"SHUTDOWN NOSAVE\r\n")
    return text


def redis_once(session, preload):
    where = session.fresh("with" if preload else "without")
    log = where / "log"
    argv = session.program("usr/bin/redis-server", "--port", "0", "--unixsocket", "socket", "--dir", ".", "--save", "",
                           "--appendonly", "no", "--enable-debug-command", "yes")
    with open(log, "wb") as out:
        server = subprocess.Popen([str(word) for word in argv], stdout=out, stderr=out, cwd=where, env=session.env(preload, stats=preload))
    try:
        end = time.monotonic() + TIMEOUT
        while server.poll() is None and not (where / "socket").exists() and time.monotonic() < end:
            time.sleep(0.1)
        if not (where / "socket").exists():
            raise Failed(f"redis-server did not start\n{log.read_text(errors='replace')[-2000:]}")
        replies = redis_replies(where / "socket")
        if server.wait(TIMEOUT) != 0:
            raise Failed(f"redis-server ended with {server.returncode}\n{log.read_text(errors='replace')[-2000:]}")
        return replies, log.read_text(errors="replace")
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


def redis(session):
    plain, _ = redis_once(session, False)
    preloaded, log = redis_once(session, True)
    if plain != preloaded or b"-ERR" in plain:
        raise Failed(f"replies differ, or are errors:\n{plain}\n{preloaded}")
    session.check_served(log, least_pages=30)


PROGRAMS = (lua, python, perl, sqlite, redis)

# ---- where they come from ---------------------------------------------------------------------------------------------------

APT = """APT::Architecture "arm64";
APT::Architectures {{ "arm64"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Debug::NoLocking "true";
Dir::State "{0}/state";
Dir::State::status "{0}/status";
Dir::Cache "{0}/cache";
"""


class Foreign(Session):
    """Programs of another processor: the library is preloaded into them, not into the emulator."""

    def __init__(self, name, lib, work, root):
        super().__init__(name, lib, work)
        self.root = root

    def program(self, path, *arguments):
        return [EMULATOR, "-L", self.root, self.root / path, *arguments]

    def env(self, preload, stats=False, **more):
        env = super().env(False, stats, **more)
        # Absolute names lead to files below the root if they are there (-L), but the loader has to find the directories.
        settings = [f"LD_LIBRARY_PATH={self.root}/usr/lib/aarch64-linux-gnu:{self.root}/lib/aarch64-linux-gnu"]
        return {**env, "QEMU_SET_ENV": ",".join(settings + ([f"LD_PRELOAD={self.lib}"] if preload else []))}


def call(*argv, **options):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False, timeout=900, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(str(word) for word in argv)[:200]}\n{(done.stdout + done.stderr)[-2000:]}")


def fetch(work):
    """The packages, unpacked; once for all runs."""
    root = work / "root"
    if (work / "fetched").exists() and (work / "fetched").read_text(encoding="utf-8") == " ".join(PACKAGES):
        return root
    if shutil.which("apt-get") is None:
        raise Skipped("packages of arm64: there is no apt-get")
    apt = work / "apt"
    for path in (root, apt):
        shutil.rmtree(path, ignore_errors=True)
    for path in ("state/lists/partial", "cache/archives/partial"):
        (apt / path).mkdir(parents=True)
    (apt / "status").touch()
    (apt / "apt.conf").write_text(APT.format(apt), encoding="utf-8")
    env = {**os.environ, "APT_CONFIG": str(apt / "apt.conf")}
    try:
        call("apt-get", "update", "-q", env=env)
        call("apt-get", "install", "-q", "-y", "--download-only", *PACKAGES, env=env)
    except Failed as why:
        raise Skipped(f"packages of arm64 cannot be fetched: {' '.join(str(why).split())[-300:]}") from why
    for package in sorted((apt / "cache/archives").glob("*.deb")):
        call("dpkg-deb", "-x", package, root)
    (work / "fetched").write_text(" ".join(PACKAGES), encoding="utf-8")
    return root


def build(work):
    call("cmake", "-S", ROOT, "-B", work, "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/toolchains/arm64.cmake",
         "-DMI_BUILD_TESTS=OFF", "-DMI_BUILD_BENCH=OFF", "-DMI_BUILD_STATIC=OFF", "-DMI_BUILD_OBJECT=OFF")
    call("cmake", "--build", work, "--target", "mimalloc")
    return work / "libmimalloc.so"


def run_one(program, lib, root):
    """What the program has said of itself."""
    with tempfile.TemporaryDirectory(prefix="mi-") as directory:
        session = Foreign(program.__name__, lib, pathlib.Path(directory), root)
        program(session)
        return ", ".join(session.notes)


def all_programs(work):
    """(name, outcome, what was said) of each; if they cannot be had, of all together."""
    found = []
    status, said = outcome_of(lambda: found.append((fetch(work), build(work))))
    if not found:
        yield "programs", status, said
        return
    (root, lib), = found
    for program in PROGRAMS:
        yield (program.__name__, *outcome_of(run_one, program, lib, root))


def main():
    name, = sys.argv[1:]
    work = ROOT / "build" / name
    work.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for test, status, said in all_programs(work):
        outcomes.append((f"preload-{test}", status, said, None))
        print(test, status, said, flush=True)
    write_results(work / "Testing" / f"results-{name}.xml", name, outcomes)
    return 1 if any(outcome[1] == FAILED for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())

"""The programs that run.py runs.  Each function is one program: it does work with and without the library by
session.both, and shows by session.served that the allocator was in use."""

import os
import pathlib
import pwd
import re
import time
import xml.etree.ElementTree as xml

from outcome import Failed, Skipped
from run import ROOT, program

# ---- languages ------------------------------------------------------------------------------------------------------

PYTHON = "/usr/bin/python3"
PYTHON_ENV = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}

PYTHON_SCRIPT = r"""
import collections, concurrent.futures, decimal, hashlib, json, multiprocessing, re, subprocess, sys, threading, zlib

table = {i: [str(j) * (j % 7) for j in range(i % 50)] for i in range(5000)}
text = json.dumps(table, sort_keys=True)
print(len(text), hashlib.sha256(text.encode()).hexdigest(), json.loads(text)["49"] == table[49])
words = re.findall(r"\"(\d+)\"", text)
print(collections.Counter(words).most_common(5))
print(hashlib.sha256(zlib.decompress(zlib.compress(text.encode(), 9))).hexdigest())
decimal.getcontext().prec = 2000
print(str(decimal.Decimal(2).sqrt())[-20:], str(3 ** 8000)[-10:])

def work(n):
    return sum(len(str(i) * (i % 100)) for i in range(n))

with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(work, [20000] * 8)))
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(work, [10000] * 4))
for _ in range(50):
    threads = [threading.Thread(target=work, args=(100,)) for _ in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
print(subprocess.run([sys.executable, "-c", "print(sum(range(10**5)))"], capture_output=True, text=True).stdout.strip())
"""


@program("python3:/usr/bin/python3", quick=True)
def python(session):
    """CPython with every object from malloc: dicts, JSON, regular expressions, threads, fork"""
    argv = [PYTHON, "-c", PYTHON_SCRIPT]
    session.both(argv, env=PYTHON_ENV)
    session.served(argv, env=PYTHON_ENV, least_pages=500)


PYTHON_TESTS_QUICK = "test_list test_dict test_json test_re test_bytes test_thread test_weakref"
PYTHON_TESTS = PYTHON_TESTS_QUICK + """
    test_array test_ast test_asyncgen test_bigmem test_binascii test_buffer test_builtin test_bz2 test_class test_codecs
    test_collections test_compile test_complex test_concurrent_futures test_configparser test_contextlib test_copy
    test_coroutines test_csv test_ctypes test_dataclasses test_datetime test_decimal test_deque test_descr test_dictviews
    test_email test_enum test_exceptions test_fileio test_float test_fork1 test_format test_fractions test_fstring
    test_functools test_generators test_grammar test_gzip test_hashlib test_heapq test_importlib test_inspect test_io
    test_itertools test_long test_lzma test_math test_memoryio test_memoryview test_mmap test_multiprocessing_fork
    test_multiprocessing_forkserver test_multiprocessing_main_handling test_operator test_os test_pathlib test_pickle
    test_posix test_pprint test_queue test_random test_sched test_set test_shelve test_shlex test_signal test_slice
    test_sort test_sqlite3 test_statistics test_string test_struct test_subprocess test_tarfile test_tempfile
    test_textwrap test_threading test_threading_local test_threadsignals test_traceback test_tuple test_typing
    test_unicode test_unicodedata test_unittest test_urllib test_userdict test_uuid test_wait4 test_xml_etree
    test_zipfile test_zlib"""


def python_test_results(session, names, preload, timeout):
    """{test case: its outcome} of CPython's own tests."""
    where = session.fresh("with" if preload else "without")
    result = session.run([PYTHON, "-m", "test", "-j2", "--timeout", "600", "--junit-xml", where / "results.xml", *names],
                         preload, env={**PYTHON_ENV, "PYTHONHASHSEED": "random"}, cwd=where, timeout=timeout)
    if not (where / "results.xml").exists():
        raise Failed(f"the tests of python gave no results, status {result.status}\n{result.out[-3000:]}{result.err[-1000:]}")
    outcomes = {}
    for case in xml.parse(where / "results.xml").iter("testcase"):
        outcome = "ok"
        for child in case:
            if child.tag in ("failure", "error"):
                outcome = "failed"
        outcomes[case.get("name")] = outcome
    for bad in re.findall(r"^(test_\w+) (?:failed|crashed|timed out)", result.out, re.MULTILINE):
        outcomes.setdefault(bad, "failed")   # a whole file, when it did not live to report cases
    return outcomes


def python_tests(session, names, timeout):
    plain = python_test_results(session, names, False, timeout)
    preloaded = python_test_results(session, names, True, timeout)

    def worse():
        return sorted(n for n in set(plain) | set(preloaded)
                      if plain.get(n) != "failed" and preloaded.get(n) != "ok" and not n.startswith("setUp"))

    if worse():
        # Some of these tests depend on how busy the machine is: what fails twice, failed.
        files = sorted({m[0] for n in worse() for m in [re.findall(r"\btest_\w+", n)] if m} & set(names)) or names
        session.note(f"repeated {' '.join(files)}")
        again = python_test_results(session, files, True, timeout)
        preloaded.update({n: o for n, o in again.items() if o == "ok"})
    if worse():
        raise Failed("these of python's own tests fail with the library only: " + ", ".join(worse()[:20]))
    session.note(f"{sum(o == 'ok' for o in preloaded.values())} of python's test cases passed,"
                 f" {sum(o == 'failed' for o in plain.values())} fail without the library too")
    session.served([PYTHON, "-m", "test", "test_list"], env=PYTHON_ENV, least_pages=100)


@program("python3:/usr/bin/python3", "libpython3.11-testsuite", quick=True)
def python_tests_quick(session):
    """A few of CPython's own tests"""
    python_tests(session, PYTHON_TESTS_QUICK.split(), 300)


@program("python3:/usr/bin/python3", "libpython3.11-testsuite")
def python_tests_all(session):
    """About a hundred files of CPython's own tests"""
    python_tests(session, PYTHON_TESTS.split(), 2400)


PERL_SCRIPT = r"""
use strict; use warnings; use Digest::SHA 'sha256_hex'; use threads;
my %h; for my $i (1 .. 100000) { my $k = sha256_hex($i % 5000); $h{substr($k, 0, 5)} .= chr(65 + $i % 26); }
my @k = sort { length($h{$b}) <=> length($h{$a}) || $a cmp $b } keys %h;
print scalar(@k), " $k[0] ", length($h{$k[0]}), "\n";
my $text = join(",", map { "$_=$h{$_}" } sort @k); my $n = 0;
$n++ while $text =~ /([0-9a-f]{5})=([A-M]+)/g; print "$n ", sha256_hex($text), "\n";
my @t = map { my $n = $_; threads->create(sub { my @a = map { "x" x ($_ % 300) } 1 .. 3000 * $n; scalar(@a) }) } 1 .. 4;
print join(" ", map { $_->join } @t), "\n";
my $pid = fork; if (!$pid) { my %c = map { $_ => "y" x $_ } 1 .. 2000; exit(scalar(keys %c) % 256); } waitpid($pid, 0); print $? >> 8, "\n";
"""


@program("perl", quick=True)
def perl(session):
    """Perl: hashes, strings that grow, sorting, threads, fork"""
    session.both(["perl", "-e", PERL_SCRIPT], env={"PERL_HASH_SEED": "0"})
    session.served(["perl", "-e", PERL_SCRIPT], env={"PERL_HASH_SEED": "0"}, least_pages=50, least_processes=2)


RUBY_SCRIPT = r"""
require 'json'; require 'digest'; require 'zlib'
h = Hash.new { |t, k| t[k] = [] }
100_000.times { |i| h[(i * 7919) % 3001] << "v#{i}" * (i % 9) }
s = JSON.generate(h.sort.to_h); puts Digest::SHA256.hexdigest(s), JSON.parse(s).size
puts 8.times.map { |t| Thread.new { (1..20_000).map { |i| i.to_s * 3 }.join.size } }.map(&:value).inspect
GC.start; GC.compact if GC.respond_to?(:compact)
puts Zlib::Inflate.inflate(Zlib::Deflate.deflate(s)) == s, (3**5000).to_s.size
pid = fork { exit(h.size % 200) }; Process.wait(pid); puts $?.exitstatus
"""


@program("ruby")
def ruby(session):
    """Ruby: hashes, JSON, threads, compaction, fork"""
    session.both(["ruby", "-e", RUBY_SCRIPT])
    session.served(["ruby", "-e", RUBY_SCRIPT], least_pages=50, least_processes=2)


NODE_SCRIPT = r"""
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib'), cp = require('child_process');
function work(n) { const m = new Map(); for (let i = 0; i < n; i++) m.set('k' + i, Buffer.alloc(i % 3000, i)); let s = 0; for (const b of m.values()) s += b.length ? b[0] : 0; return s; }
if (!isMainThread) { parentPort.postMessage(work(workerData)); }
else (async () => {
  const o = {}; for (let i = 0; i < 50000; i++) o['key' + (i * 31) % 50021] = 'value'.repeat(i % 10);
  const text = JSON.stringify(o); console.log(text.length, crypto.createHash('sha256').update(text).digest('hex'));
  console.log(zlib.gunzipSync(zlib.gzipSync(text)).length, zlib.brotliDecompressSync(zlib.brotliCompressSync(text.slice(0, 100000))).length);
  const jobs = []; for (let i = 1; i <= 6; i++) jobs.push(new Promise((ok, no) => { const w = new Worker(__filename, { workerData: 3000 * i }); w.on('message', ok); w.on('error', no); }));
  console.log(await Promise.all(jobs));
  console.log(cp.execFileSync(process.execPath, ['-p', '6*7']).toString().trim());
})();
"""


@program("nodejs:node")
def node(session):
    """Node.js: worker threads, buffers, crypto, zlib, child processes"""
    script = session.work / "script.js"
    script.write_text(NODE_SCRIPT, encoding="utf-8")
    session.both(["node", script])
    session.served(["node", script], least_pages=100, least_processes=2)


# ---- compilers --------------------------------------------------------------------------------------------------------

CXX_SOURCE = r"""
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>
int main() {
  std::map<std::string, std::vector<int>> table;
  for (int i = 0; i < 20000; i++) table[std::to_string(i % 997)].push_back(i);
  std::regex digits("(\\d)(\\d+)");
  size_t n = std::count_if(table.begin(), table.end(), [&](auto& e) { return std::regex_match(e.first, digits); });
  std::vector<std::thread> threads;
  std::vector<size_t> sums(4);
  for (size_t t = 0; t < 4; t++) threads.emplace_back([&sums, t] {
    std::unordered_map<int, std::unique_ptr<std::string>> m;
    for (int i = 0; i < 5000; i++) m[i] = std::make_unique<std::string>(size_t(i % 200), 'x');
    for (auto& e : m) sums[t] += e.second->size();
  });
  for (auto& t : threads) t.join();
  std::variant<int, std::string> v = std::string("text");
  std::ostringstream out;
  out << n << ' ' << sums[0] + sums[3] << ' ' << std::get<1>(v);
  std::cout << out.str() << '\n';
}
"""


@program("gcc", "binutils:as", quick=True)
def gcc(session):
    """gcc: this project's sources, with and without link-time optimisation; the objects must be the same bytes"""
    for flags in (["-O2", "-g"], ["-O3", "-flto", "-frandom-seed=1"]):
        script = f"gcc {' '.join(flags)} -DNDEBUG -I{ROOT}/include -c {ROOT}/src/static.c -o out.o && sha256sum out.o"
        session.both(["sh", "-c", script])
    for name in ("bignum.c", "cfrac.c"):
        if (ROOT / "demo" / name).exists():
            session.both(["sh", "-c", f"gcc -O2 -Wall -S {ROOT}/demo/{name} -o - | sha256sum"])
    # the driver, the compiler proper and the assembler
    session.served(["gcc", "-O2", "-DNDEBUG", f"-I{ROOT}/include", "-c", f"{ROOT}/src/static.c", "-o", "out.o"],
                   least_pages=100, least_processes=3)


@program("g++", "binutils:as", quick=True)
def gxx(session):
    """g++: templates of the standard library, and this project as C++; then what it built"""
    source = session.work / "source.cpp"
    source.write_text(CXX_SOURCE, encoding="utf-8")
    script = (f"g++ -O1 -pthread {source} -o program && sha256sum program && ./program && "
              f"g++ -x c++ -std=gnu++17 -O1 -DNDEBUG -I{ROOT}/include -c {ROOT}/src/static.c -o out.o && sha256sum out.o")
    session.both(["sh", "-c", script], timeout=300)
    session.served(["g++", "-O1", "-pthread", source, "-o", "program"], least_pages=500, least_processes=4, timeout=300)


# ---- tools ------------------------------------------------------------------------------------------------------------

GIT_ENV = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
           (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", "2020-01-01T00:00:00Z"))}
GIT_ENV.update(GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_COUNT="2", GIT_CONFIG_KEY_0="init.defaultBranch",
               GIT_CONFIG_VALUE_0="main", GIT_CONFIG_KEY_1="pack.threads", GIT_CONFIG_VALUE_1="2")

GIT_SCRIPT = r"""
set -e
git init -q repo; cd repo
i=0; while [ $i -lt 40 ]; do
  seq $i $((i * 50 + 100)) > file$((i % 7)); mkdir -p dir$((i % 5)); seq $((i * 3)) $((i * 9 + 500)) > dir$((i % 5))/f$i
  git add -A; git commit -q -m "commit $i"; i=$((i + 1))
done
git branch side HEAD~10; git checkout -q side; echo side > side-file; git add -A; git commit -q -m side
git checkout -q main; git merge -q --no-edit side
git gc -q --aggressive --prune=now
git fsck --full --strict 2>&1
cd ..; git clone -q --no-local repo clone; cd clone
git log --stat --format='%H %s' -M; git blame file3 | tail -3; git grep -c 77 | head -20; git rev-parse HEAD
git repack -a -d -f -q --depth=50 --window=50; git verify-pack -v .git/objects/pack/*.idx | tail -1 | sed 's/.*: //'
"""


@program("git", quick=True)
def git(session):
    """git: forty commits, merge, gc, fsck, clone, log, blame, grep, repack"""
    session.both(["sh", "-c", GIT_SCRIPT], env=GIT_ENV)
    repo = session.fresh("repo")
    session.must(["sh", "-c", "git init -q . && seq 1 20000 > f && git add f && git commit -q -m one"], False, env=GIT_ENV, cwd=repo)
    session.served(["git", "repack", "-a", "-d", "-f"], env=GIT_ENV, cwd=repo, least_pages=3)


SQL = """
PRAGMA cache_size = 500; CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
  INSERT INTO t SELECT i, (i * 7919) % 10007, printf('%06d-%s', i, hex(i * i)) FROM n;
CREATE INDEX ta ON t(a); CREATE INDEX tb ON t(b); ANALYZE;
SELECT count(*), sum(a), max(b) FROM t; SELECT a, count(*) AS c FROM t GROUP BY a ORDER BY c DESC, a LIMIT 5;
SELECT count(*) FROM t x JOIN t y ON x.a = y.a WHERE x.id < y.id AND x.id < 5000;
SELECT group_concat(b) FROM (SELECT b FROM t WHERE b LIKE '%FF%' ORDER BY b LIMIT 20);
UPDATE t SET b = b || b WHERE id % 3 = 0; DELETE FROM t WHERE id % 7 = 0; VACUUM; PRAGMA integrity_check;
SELECT json_group_array(a) FROM (SELECT a FROM t ORDER BY id LIMIT 50);
WITH RECURSIVE f(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM f LIMIT 80) SELECT max(a) FROM f;
"""


@program("sqlite3", quick=True)
def sqlite(session):
    """SQLite: a table of 60,000 rows, indexes, joins, updates, vacuum"""
    session.both(["sqlite3", "test.db"], stdin=SQL)
    session.both(["sqlite3", ":memory:"], stdin=SQL)
    session.served(["sqlite3", ":memory:"], stdin=SQL, least_pages=20)


PHP_SCRIPT = r"""
$doc = new DOMDocument(); $doc->loadXML("<a>" . str_repeat("<b c='d'>text &amp; more</b>", 2000) . "</a>");
echo strlen($doc->saveXML()), " ", (new DOMXPath($doc))->query("//b[@c]")->length, "\n";
echo count(simplexml_load_string($doc->saveXML())->b), " ", mb_strtoupper(mb_substr(str_repeat("\u{e4}\u{f6}\u{df}", 500), 3, 9)), "\n";
$db = new PDO("sqlite::memory:"); $db->exec("CREATE TABLE t(a INTEGER, b TEXT)");
$insert = $db->prepare("INSERT INTO t VALUES(?, ?)"); for ($i = 0; $i < 3000; $i++) $insert->execute([$i, md5((string)$i)]);
echo $db->query("SELECT group_concat(b) FROM (SELECT b FROM t WHERE a % 700 = 1)")->fetchColumn(), "\n";
foreach (range(1, 200) as $i) $texts[] = preg_replace_callback("/\d+/", fn($m) => $m[0] * 2, str_repeat("a $i b ", 100));
echo md5(json_encode($texts)), " ", md5(serialize(json_decode(json_encode($texts)))), "\n";
"""


@program("php-cli:php", "php-xml", "php-mbstring", "php-sqlite3", quick=True)
def php(session):
    """PHP, which opens its extensions with RTLD_DEEPBIND; with its own allocator, and with every object from malloc"""
    argv = ["php", "-r", PHP_SCRIPT]
    session.both(argv)
    session.both(argv, env={"USE_ZEND_ALLOC": "0"})
    session.served(argv, env={"USE_ZEND_ALLOC": "0"}, least_pages=20)
    if session.run(argv, True, env={"MIMALLOC_KEEP_DEEPBIND": "1"}).status == 0:
        session.note("this PHP runs with RTLD_DEEPBIND too")


def write_sample(path, size):
    """Text of words that compresses like text; the same each time."""
    state, words = 1, [f"{'lorem ipsum dolor sit amet consectetur'.split()[i % 6]}{i * i % 1009}" for i in range(3000)]
    with open(path, "w", encoding="utf-8") as file:
        written = 0
        while written < size:
            line = []
            for _ in range(12):
                state = (state * 1103515245 + 12345) & 0x7FFFFFFF
                line.append(words[(state >> 8) % 3000 if state & 64 else (state >> 8) % 40])
            text = " ".join(line) + "\n"
            file.write(text)
            written += len(text)


@program("zstd", quick=True)
def zstd(session):
    """zstd with two threads, at a low and a high level"""
    sample = session.work / "sample"
    write_sample(sample, 6 << 20)
    for level in (["-3"], ["-13"], ["--long=27", "-9"]):
        script = f"zstd -q -T2 {' '.join(level)} -c {sample} > out && sha256sum out && zstd -d -q --long=27 -c out | sha256sum"
        session.both(["sh", "-c", script])
    session.served(["zstd", "-q", "-T2", "-12", sample, "-o", "out.zst"], least_pages=1)


@program("xz-utils:xz", quick=True)
def xz(session):
    """xz with two threads"""
    sample = session.work / "sample"
    write_sample(sample, 6 << 20)
    session.both(["sh", "-c", f"xz -T2 -2 --block-size=1MiB -c {sample} > out && sha256sum out && xz -T2 -dc out | sha256sum"])
    session.bound(["xz", "-T2", "-2", "--block-size=1MiB", "-k", "-f", sample])


# ---- servers ------------------------------------------------------------------------------------------------------------

def wait_for(what, test, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if test():
            return
        time.sleep(0.1)
    raise Failed(f"{what} did not happen in {seconds} s")


REDIS_COMMANDS = """
FLUSHALL
CONFIG SET save ""
EVAL "for i = 1, 20000 do redis.call('SET', 'k' .. i, string.rep('v', i % 300)); redis.call('HSET', 'h' .. (i % 50), i, i * i); redis.call('ZADD', 'z', i % 977, i); redis.call('RPUSH', 'l' .. (i % 9), i) end return redis.call('DBSIZE')" 0
DEBUG CHANGE-REPL-ID
STRLEN k299
HLEN h7
ZRANGE z 100 110 WITHSCORES
LRANGE l3 0 5
EVAL "for i = 1, 20000, 2 do redis.call('DEL', 'k' .. i) end return redis.call('DBSIZE')" 0
APPEND k2 abcdef
SORT l1 LIMIT 0 5 DESC
OBJECT ENCODING z
SAVE
DEBUG RELOAD
DBSIZE
DEBUG DIGEST
"""


def redis_once(session, preload):
    """Starts a server, loads it with a benchmark, asks it for results, and stops it: (replies, what it printed)."""
    import subprocess
    where = session.fresh("with" if preload else "without")
    socket, log = where / "socket", where / "log"
    with open(log, "wb") as out:
        server = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", str(socket), "--dir", str(where), "--save", "", "--appendonly",
             "no", "--enable-debug-command", "yes", "--io-threads", "2", "--lazyfree-lazy-user-del", "yes"],
            stdout=out, stderr=out, env=session.env(preload, stats=preload), cwd=where)
    try:
        wait_for("the start of redis-server", lambda: server.poll() is not None or socket.exists())
        session.must(["redis-benchmark", "-s", socket, "-q", "-n", "20000", "-c", "20", "-P", "4", "-d", "100", "-t",
                      "set,get,incr,lpush,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset"], False, timeout=300)
        fork = session.must(["redis-cli", "-s", socket, "BGSAVE"], False).out
        if "started" not in fork:
            raise Failed(f"redis did not fork: {fork}")
        wait_for("the end of BGSAVE", lambda: "rdb_bgsave_in_progress:0" in
                 session.must(["redis-cli", "-s", socket, "INFO", "persistence"], False).out)
        replies = session.must(["redis-cli", "-s", socket], False, stdin=REDIS_COMMANDS, timeout=120).out
        session.run(["redis-cli", "-s", socket, "SHUTDOWN", "NOSAVE"], False)
        if server.wait(30) != 0:
            raise Failed(f"redis-server ended with {server.returncode}\n{log.read_text(errors='replace')[-2000:]}")
        return replies, log.read_text(errors="replace")
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


@program("redis-server", "redis-tools:redis-benchmark")
def redis(session):
    """redis-server under redis-benchmark, with scripts, background save by fork, and a reload"""
    plain, _ = redis_once(session, False)
    preloaded, log = redis_once(session, True)
    if plain != preloaded:
        raise Failed(f"replies differ:\n{plain}\n{preloaded}")
    session.check_served(log, least_pages=50)


def postgres_once(session, preload, bin_dir, user):
    where = session.fresh("with" if preload else "without")
    os.chown(where, user.pw_uid, user.pw_gid)
    env = {"HOME": str(where), "TMPDIR": str(where)}

    def pg(*argv, stats=False, timeout=300):
        return session.must([bin_dir / argv[0], *argv[1:]], preload, stats=stats, env=env, cwd=where, user=user.pw_uid,
                            timeout=timeout)

    pg("initdb", "-D", where / "data", "-A", "trust", "--no-locale", "-E", "UTF8", "--no-sync")
    options = (f"-c listen_addresses= -c unix_socket_directories={where} -c fsync=off -c jit=off "
               "-c max_parallel_workers_per_gather=2 -c min_parallel_table_scan_size=0 -c parallel_setup_cost=0")
    pg("pg_ctl", "-D", where / "data", "-w", "-l", where / "log", "-o", options, "start", stats=preload)
    try:
        host = ["-h", where, "-U", user.pw_name, "postgres"]
        pg("pgbench", "-i", "-q", "-s", "4", *host)
        pg("pgbench", "-n", "-c", "1", "-t", "1500", "--random-seed=7", *host)
        sql = ("SELECT sum(abalance), sum(bid) FROM pgbench_accounts; SELECT sum(bbalance) FROM pgbench_branches;"
               "SELECT count(*), sum(delta) FROM pgbench_history;"
               "SELECT md5(string_agg(x::text, ',' ORDER BY x)) FROM (SELECT abalance % 97 + aid % 1009 AS x FROM pgbench_accounts) s;"
               "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 50000) SELECT sum(n), count(DISTINCT n % 313) FROM t;"
               "SELECT count(*) FROM pgbench_accounts a JOIN pgbench_accounts b ON a.aid = b.aid + 1 WHERE a.aid % 3 = 0;")
        answers = pg("psql", "-X", "-A", "-t", "-c", sql, *host).out
        # Several clients: how they interleave is chance, but no money may be lost.
        pg("pgbench", "-n", "-c", "6", "-j", "2", "-T", "6", *host)
        sums = pg("psql", "-X", "-A", "-t", "-c", "SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM"
                  " pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(delta) FROM pgbench_history)", *host).out
        if len(set(sums.strip().split("|"))) != 1:
            raise Failed(f"balances do not add up: {sums}")
    finally:
        session.run([bin_dir / "pg_ctl", "-D", where / "data", "-m", "fast", "-w", "stop"], preload, env=env, cwd=where,
                    user=user.pw_uid, timeout=60)
    return answers, (where / "log").read_text(errors="replace")


@program("postgresql:/usr/lib/postgresql/15/bin/postgres")
def postgres(session):
    """PostgreSQL: initdb, pgbench with one and with several clients, parallel queries"""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        raise Skipped("PostgreSQL is not where Debian puts it")
    if os.getuid() != 0:
        user = pwd.getpwuid(os.getuid())
    else:
        names = {p.pw_name: p for p in pwd.getpwall()}
        user = names.get("postgres") or names.get("nobody")   # it refuses to run as root
    plain, _ = postgres_once(session, False, found[-1], user)
    preloaded, log = postgres_once(session, True, found[-1], user)
    if plain != preloaded:
        raise Failed(f"answers differ:\n{plain}\n{preloaded}")
    if re.search(r"server process .* was terminated by signal|PANIC", log):
        raise Failed(f"a server process crashed\n{log[-2000:]}")
    session.check_served(log, least_pages=100, least_processes=5)


# ---- a browser ----------------------------------------------------------------------------------------------------------

HTML = """<!doctype html><meta charset=utf-8><title>page</title><h1>Printed by a browser</h1><div id=o></div><canvas id=c></canvas>
<script>
  const rows = []; for (let i = 0; i < 2000; i++) rows.push({ i, s: 'text'.repeat(i % 9), q: i * i });
  document.getElementById('o').innerHTML = '<table>' + rows.filter(r => r.i % 20 === 0).map(r => `<tr><td>${r.i}<td>${r.s}<td>${r.q}`).join('') + '</table>';
  const x = document.getElementById('c').getContext('2d'); for (let i = 0; i < 500; i++) x.fillRect(i % 50 * 6, i, 4, 4);
</script>"""


def pdf_without_dates(data):
    return re.sub(rb"/(CreationDate|ModDate|ID|Producer|Creator)\s*(\([^)]*\)|\[[^\]]*\])", b"", data)


@program("chromium", "binutils:nm")
def chromium(session):
    """Chromium, headless, printing a page to PDF; its executable has a malloc of its own, which must not be mixed with ours"""
    page = session.work / "page.html"
    page.write_text(HTML, encoding="utf-8")

    def argv(where):
        return ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                f"--user-data-dir={where}/profile", f"--print-to-pdf={where}/out.pdf", "--no-pdf-header-footer", f"file://{page}"]

    documents = []
    for preload in (False, True):
        where = session.fresh("with" if preload else "without")
        session.must(argv(where), preload, cwd=where, timeout=180)
        documents.append(pdf_without_dates((where / "out.pdf").read_bytes()))
    plain, preloaded = documents
    if plain[:5] != b"%PDF-" or plain.count(b"/Type /Page\n") != preloaded.count(b"/Type /Page\n") or \
            abs(len(plain) - len(preloaded)) > 200:
        raise Failed(f"the documents differ: {len(plain)} and {len(preloaded)} bytes")
    session.note(f"a PDF of {len(preloaded)} bytes")
    symbols = session.must(["nm", "-D", "--defined-only", "/usr/lib/chromium/chromium"], False).out
    if re.search(r" T malloc$", symbols, re.MULTILINE):
        session.is_served = True   # as far as it can be: the executable's symbols come before the library's
        session.note("not served: it defines malloc itself")
    else:
        where = session.fresh("served")
        session.served(argv(where), cwd=where, timeout=180, least_pages=20)

"""Interpreters and runtimes of languages."""

import re
import xml.etree.ElementTree as xml

from outcome import Failed
from registry import program

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
    plain, preloaded = session.pair(lambda preload: python_test_results(session, names, preload, timeout))

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


LUA_SCRIPT = r"""
local t = {}
for i = 1, 200000 do local k = (i * 7919) % 3001; t[k] = (t[k] or "") .. string.rep("v", i % 3) end
local n, sum = 0, 0
for k, v in pairs(t) do n = n + 1; sum = sum + k * #v end
print(n, sum)
local c = {}
for i = 1, 5000 do c[i] = coroutine.wrap(function() for j = 1, 3 do coroutine.yield(("x"):rep(i + j)) end end) end
local total = 0
for j = 1, 3 do for i = 1, 5000 do total = total + #c[i]() end end
c = nil; collectgarbage()
local words = {}
for w in (("lorem ipsum dolor "):rep(20000)):gmatch("%a+") do words[#words + 1] = w:upper():reverse() end
print(total, #words, table.concat(words, ","):sub(-20))
"""


@program("lua5.4", quick=True)
def lua(session):
    """Lua: strings that grow, coroutines, patterns"""
    session.both(["lua5.4", "-e", LUA_SCRIPT])
    session.served(["lua5.4", "-e", LUA_SCRIPT], least_pages=50)


TCL_SCRIPT = r"""
set d [dict create]
for {set i 0} {$i < 40000} {incr i} { dict append d [expr {($i * 7919) % 1009}] [string repeat v [expr {$i % 7}]] }
set n 0; dict for {k v} $d { incr n [string length $v] }
puts "[dict size $d] $n"
set words [lsort -unique [regexp -all -inline {\w+} [string repeat "lorem ipsum dolor 17 sit amet " 3000]]]
puts $words
proc deep {n} { if {$n == 0} { return x }; return "[deep [expr {$n - 1}]]y" }
puts [string length [deep 500]]
foreach i {1 2 3} { interp create child$i; puts [child$i eval {set l {}; for {set i 0} {$i < 20000} {incr i} {lappend l $i$i}; llength $l}]; interp delete child$i }
"""


@program("tcl:tclsh")
def tcl(session):
    """Tcl: dictionaries, regular expressions, interpreters that come and go"""
    script = session.work / "script.tcl"
    script.write_text(TCL_SCRIPT, encoding="utf-8")
    session.both(["tclsh", script])
    session.served(["tclsh", script], least_pages=20)


GAWK_SCRIPT = r"""
BEGIN {
  for (i = 0; i < 120000; i++) { k = (i * 7919) % 5003; a[k] = a[k] substr("abcdefghij", i % 10 + 1, 1) }
  n = asorti(a, keys, "@ind_num_asc"); print n, length(a[17]), a[4242]
  for (i = 1; i <= n; i++) { s = s "," a[keys[i]]; if (length(s) > 5000) { m += gsub(/a[b-f]?/, "<&>", s); s = "" } }
  print m; for (i = 0; i < 3000; i++) { split(sprintf("%d %x %o", i, i, i), f); delete a[i]; t += length(f[2]) } print t, length(a)
  "echo from a child" | getline line; print line
}
"""


@program("gawk")
def gawk(session):
    """gawk: arrays, sorting, substitution, a pipe"""
    session.both(["gawk", GAWK_SCRIPT])
    session.served(["gawk", GAWK_SCRIPT], least_pages=20)


BASH_SCRIPT = r"""
declare -A a; for ((i = 0; i < 30000; i++)); do a[$((i * 7919 % 1009))]+=${i:0:2}; done
n=0; for k in "${!a[@]}"; do n=$((n + ${#a[$k]})); done; echo ${#a[@]} $n
mapfile -t lines < <(seq 20000); echo ${#lines[@]} ${lines[777]//7/x}
s=; for i in {1..3000}; do s+="word$i "; done; t=${s//word/w}; echo ${#s} ${#t}
for i in 1 2 3 4 5; do (echo "in a subshell $i: $(echo deeper | tr a-z A-Z)"); done; f() { [ $1 -gt 0 ] && f $(($1 - 1)); }; f 500; wait
"""


@program("bash", quick=True)
def bash(session):
    """bash: arrays, substitution, subshells, recursion"""
    session.both(["bash", "-c", BASH_SCRIPT])
    session.served(["bash", "-c", BASH_SCRIPT], least_pages=20, least_processes=2)


GUILE_SCRIPT = r"""
(use-modules (ice-9 threads) (ice-9 regex) (srfi srfi-1))
(define t (make-hash-table))
(do ((i 0 (+ i 1))) ((= i 60000)) (hashv-set! t (modulo (* i 7919) 3001) (number->string (* i i))))
(display (hash-fold (lambda (k v s) (+ s (string-length v))) 0 t)) (newline)
(display (string-length (number->string (fold * 1 (iota 1500 1))))) (newline)
(display (par-map (lambda (n) (length (filter even? (iota n)))) '(20000 30000 40000))) (newline)
(display (fold-matches "[0-9]+" (string-join (map number->string (iota 2000)) " ") 0 (lambda (m n) (+ n 1)))) (newline)
"""


@program("guile-3.0:guile")
def guile(session):
    """Guile: hash tables, large numbers, threads; its objects are from a garbage collector, the rest from malloc"""
    argv = ["guile", "--no-auto-compile", "-c", GUILE_SCRIPT]
    session.both(argv)
    session.served(argv, least_pages=5)


PROLOG_SCRIPT = r"""
:- use_module(library(thread)).
fib(0, 0) :- !. fib(1, 1) :- !. fib(N, F) :- A is N - 1, B is N - 2, fib(A, X), fib(B, Y), F is X + Y.
:- dynamic fact/2.
main :- forall(between(1, 30000, I), (K is I * 7919 mod 3001, assertz(fact(K, I)))),
        aggregate_all(count, fact(77, _), N), writeln(N), retractall(fact(_, 5)),
        numlist(1, 5000, L), atomic_list_concat(L, ',', A), atom_length(A, Len), writeln(Len),
        concurrent_maplist([X, Y]>>fib(X, Y), [15, 16, 17, 18], Fs), writeln(Fs),
        X is 7 ** 2000, atom_length(X, D), writeln(D).
"""


@program("swi-prolog-nox:swipl")
def prolog(session):
    """SWI-Prolog: facts, atoms, large numbers, threads"""
    script = session.work / "script.pl"
    script.write_text(PROLOG_SCRIPT, encoding="utf-8")
    argv = ["swipl", "-q", "-g", "main", "-t", "halt", script]
    session.both(argv)
    session.served(argv, least_pages=20)


ERLANG_SCRIPT = (
    'Work = fun(N) -> lists:sum([byte_size(integer_to_binary(I * I)) || I <- lists:seq(1, N)]) end, Self = self(), '
    '[spawn(fun() -> Self ! {I, Work(I * 500)} end) || I <- lists:seq(1, 40)], '
    'R = [receive {I, V} -> V end || I <- lists:seq(1, 40)], io:format("~p~n", [lists:sum(R)]), '
    'T = ets:new(t, [ordered_set]), [ets:insert(T, {I * 7919 rem 10007, lists:duplicate(I rem 9, x)}) || I <- lists:seq(1, 30000)], '
    'io:format("~p ~p~n", [ets:info(T, size), ets:first(T)]), B = term_to_binary(ets:tab2list(T), [compressed]), '
    'io:format("~p ~p~n", [erlang:phash2(B), length(binary_to_term(B))]), halt().')


@program("erlang-base:erl")
def erlang(session):
    """Erlang: processes, tables, terms; with its own allocators, and with all of them off"""
    for options in ([], ["+Mea", "min"]):
        argv = ["erl", "+S", "2", *options, "-noshell", "-eval", ERLANG_SCRIPT]
        session.both(argv, env={"ERL_CRASH_DUMP": "/dev/null"})
    session.bound(argv, env={"ERL_CRASH_DUMP": "/dev/null"})


LISP_SCRIPT = r"""
(let ((h (make-hash-table :test 'equal)))
  (dotimes (i 60000) (push i (gethash (format nil "k~d" (mod (* i 7919) 3001)) h)))
  (format t "~d ~d~%" (hash-table-count h) (length (gethash "k17" h))))
(format t "~d~%" (integer-length (reduce #'* (loop for i from 1 to 2000 collect i))))
(format t "~a~%" (funcall (compile nil '(lambda (n) (loop for i below n sum (* i i)))) 100000))
(let ((threads (loop for n from 1 to 3 collect (let ((n n)) (sb-thread:make-thread (lambda () (length (make-list (* n 100000)))))))))
  (format t "~a~%" (mapcar #'sb-thread:join-thread threads)))
(gc :full t) (sb-ext:exit)
"""


@program("sbcl")
def lisp(session):
    """Steel Bank Common Lisp: its objects have a heap of their own, its runtime uses malloc"""
    script = session.work / "script.lisp"
    script.write_text(LISP_SCRIPT, encoding="utf-8")
    argv = ["sbcl", "--script", script]
    session.both(argv)
    session.bound(argv)

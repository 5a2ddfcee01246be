"""Databases: in a process, and as servers on sockets."""

import concurrent.futures
import hashlib
import os
import pwd
import re
import signal
import socket

from outcome import Failed, Skipped
from registry import program
from session import debian_directory, difference, wait_for

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
    """A server that is loaded with a benchmark, asked for results, and stopped: (replies, what it printed)."""
    where = session.fresh("server")
    path = where / "socket"
    argv = ["redis-server", "--port", "0", "--unixsocket", path, "--dir", where, "--save", "", "--appendonly", "no",
            "--enable-debug-command", "yes", "--io-threads", "2", "--lazyfree-lazy-user-del", "yes"]

    def client(*words, **options):
        return session.client([words[0], "-s", path, *words[1:]], timeout=300, **options).out

    with session.serving(argv, preload, path.exists, stop=None, cwd=where) as log:
        client("redis-benchmark", "-q", "-n", "5000", "-c", "20", "-P", "4", "-d", "100", "-t",
               "set,get,incr,lpush,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset")
        fork = client("redis-cli", "BGSAVE")
        if "started" not in fork:
            raise Failed(f"redis did not fork: {fork}")
        wait_for("the end of BGSAVE", lambda: "rdb_bgsave_in_progress:0" in client("redis-cli", "INFO", "persistence"))
        replies = client("redis-cli", stdin=REDIS_COMMANDS)
        client("redis-cli", "SHUTDOWN", "NOSAVE")
    return replies, log.read_text(errors="replace")


def compare_servers(session, once, **least):
    """Compares what `once` gives as (answers, log), and looks for statistics in the log: the last of the two that it gives."""
    (plain, _), (preloaded, log) = session.pair(once)
    if plain != preloaded:
        raise Failed(difference("the answers", plain, preloaded))
    session.check_served(log, **least)
    return log


@program("redis-server", "redis-tools:redis-benchmark")
def redis(session):
    """redis-server under redis-benchmark, with scripts, background save by fork, and a reload"""
    compare_servers(session, lambda preload: redis_once(session, preload), least_pages=50)


def postgres_once(session, preload, bin_dir, user):
    where = session.fresh("server")
    os.chown(where, user.pw_uid, user.pw_gid)
    env = {"HOME": str(where), "TMPDIR": str(where)}

    def pg(*argv, stats=False, timeout=300):
        return session.must([bin_dir / argv[0], *argv[1:]], preload, stats=stats, env=env, cwd=where, user=user.pw_uid,
                            timeout=timeout)

    pg("initdb", "-D", where / "data", "-A", "trust", "--no-locale", "-E", "UTF8", "--no-sync")
    options = (f"-c listen_addresses= -c unix_socket_directories={where} -c fsync=off -c jit=off "
               "-c max_parallel_workers_per_gather=2 -c min_parallel_table_scan_size=0 -c parallel_setup_cost=0")
    argv = [bin_dir / "postgres", "-D", where / "data", "-c", "listen_addresses=", "-c", f"unix_socket_directories={where}",
            "-c", "fsync=off", "-c", "jit=off", "-c", "max_parallel_workers_per_gather=2", "-c", "min_parallel_table_scan_size=0",
            "-c", "parallel_setup_cost=0"]
    with session.serving(argv, preload, lambda: "ready to accept" in (where / "server-output").read_text(errors="replace"),
                         stop=signal.SIGINT, env=env, cwd=where, user=user.pw_uid) as log:
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
    return answers, log.read_text(errors="replace")


@program("postgresql:/usr/lib/postgresql/15/bin/postgres")
def postgres(session):
    """PostgreSQL: initdb, pgbench with one and with several clients, parallel queries"""
    bin_dir = debian_directory("usr/lib/postgresql/*/bin")
    if bin_dir is None:
        raise Skipped("PostgreSQL is not where Debian puts it")
    if os.getuid() != 0:
        user = pwd.getpwuid(os.getuid())
    else:
        names = {p.pw_name: p for p in pwd.getpwall()}
        user = names.get("postgres") or names.get("nobody")   # it refuses to run as root
    log = compare_servers(session, lambda preload: postgres_once(session, preload, bin_dir, user), least_pages=100, least_processes=5)
    if re.search(r"server process .* was terminated by signal|PANIC", log):
        raise Failed(f"a server process crashed\n{log[-2000:]}")


MARIADB_SQL = """
CREATE DATABASE d; USE d; CREATE TABLE t(id INT PRIMARY KEY, a INT, b VARCHAR(200), KEY(a)) ENGINE=InnoDB;
INSERT INTO t SELECT seq, seq * 7919 % 10007, REPEAT(HEX(seq), 4) FROM seq_1_to_30000;
SELECT COUNT(*), SUM(a), MAX(b) FROM t; SELECT a, COUNT(*) AS c FROM t GROUP BY a ORDER BY c DESC, a LIMIT 3;
SELECT COUNT(*) FROM t x JOIN t y ON x.a = y.a WHERE x.id < y.id; UPDATE t SET b = CONCAT(b, b) WHERE id % 3 = 0; DELETE FROM t WHERE id % 7 = 0;
SELECT MD5(GROUP_CONCAT(b ORDER BY id)) FROM t WHERE id % 500 = 1;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT SUM(i) FROM n;
SELECT JSON_ARRAYAGG(a ORDER BY id) FROM t WHERE id < 20; ALTER TABLE t ADD COLUMN c INT DEFAULT 5; CHECK TABLE t;
"""


@program("mariadb-server-core:mariadbd")
def mariadb(session):
    """MariaDB: its bootstrap executes statements on InnoDB and Aria tables; then the server starts and is stopped"""
    statements = "\n".join(line for line in MARIADB_SQL.replace("; ", ";\n").splitlines() if line)

    def argv(where, *more):
        user = ["--user=root"] if os.getuid() == 0 else []
        return ["mariadbd", "--no-defaults", *user, f"--datadir={where}/data", f"--tmpdir={where}", "--lc-messages-dir=/usr/share/mysql",
                "--innodb-buffer-pool-size=24M", "--innodb-flush-method=fsync", "--aria-log-dir-path=" + f"{where}/data", *more]

    def once(preload):
        where = session.fresh("server")
        (where / "data").mkdir()
        # The bootstrap has no client to print to: what the queries give goes to files, as tables do.
        lines, number = ["CREATE DATABASE mysql;"], 0
        for line in statements.splitlines():
            if line.startswith(("SELECT", "WITH")):
                number += 1
                line = line.rstrip(";") + f" INTO OUTFILE '{where}/result{number}';"
            lines.append(line)
        session.must(argv(where, "--bootstrap", "--secure-file-priv=", "--skip-grant-tables"), preload, stdin="\n".join(lines), cwd=where)
        results = "".join((where / f"result{i + 1}").read_text() for i in range(number))
        start = argv(where, f"--socket={where}/socket", "--skip-networking", "--skip-grant-tables", f"--pid-file={where}/pid")
        with session.serving(start, preload, lambda: "ready for connections" in (where / "server-output").read_text(errors="replace"),
                             cwd=where) as log:
            pass
        return f"{number} results\n{results}", log.read_text(errors="replace")

    compare_servers(session, once, least_pages=50)


def memcached_talk(path, prefix):
    """Sets, gets, deletes and counts over the text protocol; gives a digest of the answers."""
    digest, n_keys = hashlib.sha256(), 5000
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(path))
        answers = link.makefile("rb")

        def ask(command, n_lines=1):
            link.sendall(command)
            for _ in range(n_lines):
                digest.update(answers.readline())

        for i in range(n_keys):
            value = b"v" * (i * 7919 % 900)
            ask(b"set %s%d 0 0 %d\r\n%s\r\n" % (prefix, i, len(value), value))
        for i in range(0, n_keys, 3):
            ask(b"get %s%d\r\n" % (prefix, i), 3)
            ask(b"delete %s%d\r\n" % (prefix, i + 1))
        ask(b"set %s 0 0 2\r\n41\r\n" % prefix)
        ask(b"incr %s 1\r\n" % prefix)
    return digest.hexdigest()


@program("memcached")
def memcached(session):
    """memcached: four connections at once, with keys of their own; two threads, slabs from malloc"""
    user = ["-u", "root"] if os.getuid() == 0 else []

    def once(preload):
        where = session.fresh("server")
        path = where / "socket"
        with session.serving(["memcached", *user, "-s", path, "-t", "2", "-m", "64"], preload, path.exists, cwd=where) as log:
            with concurrent.futures.ThreadPoolExecutor(4) as clients:
                answers = list(clients.map(memcached_talk, [path] * 4, [b"a", b"b", b"c", b"d"]))
        return "\n".join(answers), log.read_text(errors="replace")

    compare_servers(session, once)


@program("rocksdb-tools:db_bench")
def rocksdb(session):
    """RocksDB: its benchmark fills, reads, deletes and compacts with two threads; then its contents are the same"""
    def once(preload):
        where = session.fresh("db")
        session.must(["db_bench", f"--db={where}/data", "--benchmarks=fillseq,readrandom,compact,readseq", "--num=60000", "--threads=1",
                      "--seed=7", "--compression_type=none", "--value_size=200"], preload, cwd=where)
        return session.must(["sh", "-c", f"ldb --db={where}/data scan --hex | sha256sum; ldb --db={where}/data --hex get 0x{'00' * 16}; "
                             f"ldb --db={where}/data checkconsistency"], preload, cwd=where).out

    session.same(once)
    where = session.fresh("bench")
    session.served(["db_bench", f"--db={where}/data", "--benchmarks=fillrandom,overwrite,readwhilewriting,deleterandom", "--num=20000",
                    "--threads=2", "--compression_type=none"], least_pages=50, cwd=where)

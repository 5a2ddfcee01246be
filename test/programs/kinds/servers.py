"""Servers, on the loopback address only; each is stopped by the test."""

import concurrent.futures
import hashlib
import http.client
import os
import pathlib
import pwd
import signal
import socket
import struct

from outcome import Failed, Skipped
from registry import program
from session import difference

N_REQUESTS = 150


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False


def user_name():
    return pwd.getpwuid(os.getuid()).pw_name


def read_over_http(port, paths):
    """Asks for the paths again and again over one connection; gives a digest of statuses and bodies."""
    digest = hashlib.sha256()
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for i in range(N_REQUESTS):
        link.request("GET", paths[i % len(paths)], headers={"Accept-Encoding": "gzip" if i % 5 == 0 else "identity"})
        answer = link.getresponse()
        digest.update(b"%d " % answer.status + answer.read())
        if answer.will_close:
            link.close()
    link.close()
    return digest.hexdigest()


def make_site(where):
    """Files to serve: the root, and what there is in it."""
    root = where / "root"
    root.mkdir()
    names = []
    for i, size in enumerate((0, 1, 700, 5000, 70000, 400000)):
        names.append(f"/file{i}.txt")
        (root / f"file{i}.txt").write_text("".join(f"line {j} of {i}\n" for j in range(size // 10)), encoding="utf-8")
        os.utime(root / f"file{i}.txt", (1e9, 1e9))
    return root, [*names, "/missing", "/file3.txt?query=1"]


def http_server(session, configure, stop=signal.SIGTERM, least_processes=1):
    """A web server that configure(where, root, port) prepares, giving the command, under three clients."""
    def once(preload):
        where = session.fresh("server")
        where.chmod(0o777)
        root, paths = make_site(where)
        port = free_port()
        argv = configure(where, root, port)
        with session.serving(argv, preload, lambda: listens(port), cwd=where, stop=stop) as log:
            with concurrent.futures.ThreadPoolExecutor(3) as clients:
                answers = list(clients.map(read_over_http, [port] * 3, [paths] * 3))
        return "\n".join(answers), "".join(f.read_text(errors="replace") for f in (log, where / "error.log") if f.exists())

    (plain, _), (preloaded, log) = session.pair(once)
    if plain != preloaded:
        raise Failed(difference("what the clients got", plain, preloaded))
    session.check_served(log, least_processes=least_processes)


@program("nginx-light:nginx")
def nginx(session):
    """nginx: two workers, files, compression, errors; three clients"""
    def configure(where, root, port):
        (where / "nginx.conf").write_text(
            f"daemon off; worker_processes 2; pid {where}/pid; error_log stderr;"
            + (f" user {user_name()};" if os.getuid() == 0 else "") +
            f"events {{ worker_connections 64; }} http {{ access_log off; gzip on; gzip_types text/plain; client_body_temp_path {where}/a;"
            f" proxy_temp_path {where}/b; fastcgi_temp_path {where}/c; uwsgi_temp_path {where}/d; scgi_temp_path {where}/e;"
            f" types {{ text/plain txt; }} server {{ listen 127.0.0.1:{port}; root {root}; server_tokens off; }} }}", encoding="utf-8")
        return ["nginx", "-c", where / "nginx.conf", "-p", where, "-e", "stderr"]

    http_server(session, configure, stop=signal.SIGQUIT)


@program("lighttpd")
def lighttpd(session):
    """lighttpd: files and errors; three clients"""
    def configure(where, root, port):
        (where / "lighttpd.conf").write_text(
            f'server.document-root = "{root}"\nserver.port = {port}\nserver.bind = "127.0.0.1"\nserver.tag = "x"\n'
            'mimetype.assign = (".txt" => "text/plain")\n', encoding="utf-8")
        return ["lighttpd", "-D", "-f", where / "lighttpd.conf"]

    http_server(session, configure, stop=signal.SIGINT)


@program("apache2-bin:apache2")
def apache(session):
    """Apache with its event module: processes with threads, modules that are opened at run time; three clients"""
    def configure(where, root, port):
        modules = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"
                          for name in ("mpm_event", "authz_core", "mime", "deflate", "dir", "filter"))
        user = f"User {user_name()}\n" if os.getuid() == 0 else ""
        (where / "types").write_text("text/plain txt\n", encoding="utf-8")
        (where / "apache.conf").write_text(
            f"{modules}ServerName localhost\nListen 127.0.0.1:{port}\nServerRoot {where}\nDocumentRoot {root}\nPidFile {where}/pid\n"
            f"ErrorLog {where}/error.log\nTypesConfig {where}/types\nStartServers 2\nThreadsPerChild 8\nServerTokens Prod\nServerSignature Off\n"
            f"AddOutputFilterByType DEFLATE text/plain\n<Directory {root}>\nRequire all granted\n</Directory>\n", encoding="utf-8")
        return ["apache2", "-D", "FOREGROUND", *(["-D", "BIG_SECURITY_HOLE"] if user else []), "-f", where / "apache.conf"]

    http_server(session, configure)


@program("haproxy", "python3")
def haproxy(session):
    """HAProxy between three clients and a web server: two threads, pools, headers that it rewrites"""
    def once(preload):
        where = session.fresh("server")
        root, paths = make_site(where)
        back, front = free_port(), free_port()
        (where / "haproxy.cfg").write_text(
            "global\n nbthread 2\n maxconn 50\ndefaults\n mode http\n timeout connect 20s\n timeout client 60s\n timeout server 60s\n"
            f"frontend f\n bind 127.0.0.1:{front}\n default_backend b\n http-request set-header X-A %[path]\nbackend b\n server s 127.0.0.1:{back}\n",
            encoding="utf-8")
        files = ["python3", "-m", "http.server", back, "--bind", "127.0.0.1", "--directory", root]
        behind = session.fresh("behind")
        with session.serving(files, False, lambda: listens(back), cwd=behind, status=(0, -15), is_counted=False):
            with session.serving(["haproxy", "-f", where / "haproxy.cfg", "-db"], preload, lambda: listens(front), cwd=where,
                                 stop=signal.SIGUSR1) as log:
                with concurrent.futures.ThreadPoolExecutor(3) as clients:
                    answers = list(clients.map(read_over_http, [front] * 3, [paths] * 3))
        return "\n".join(answers), log.read_text(errors="replace")

    (plain, _), (preloaded, log) = session.pair(once)
    if plain != preloaded:
        raise Failed(difference("what the clients got", plain, preloaded))
    session.check_served(log)


# ---- names ---------------------------------------------------------------------------------------------------------------

def ask_name(port, name, number):
    """The answer of a name server to a question for an address, as a text; "" if there is none."""
    question = b"".join(bytes([len(word)]) + word.encode() for word in name.split(".")) + b"\0" + struct.pack(">HH", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.settimeout(5)
        for _ in range(6):
            try:
                link.sendto(struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0) + question, ("127.0.0.1", port))
                return link.recv(4096).hex()
            except OSError:   # no answer yet
                pass
    return ""


def name_server(session, configure):
    """A name server with names of its own, and no others above it."""
    def once(preload):
        where = session.fresh("server")
        where.chmod(0o777)
        port = free_port(socket.SOCK_DGRAM)
        argv = configure(where, port)
        with session.serving(argv, preload, lambda: ask_name(port, "host1.example", 1) != "", cwd=where, status=(0, 2)) as log:
            answers = [ask_name(port, f"host{i % 320}.example", i) for i in range(600)]
        return "\n".join(answers), log.read_text(errors="replace")

    (plain, _), (preloaded, log) = session.pair(once)
    if plain != preloaded:
        raise Failed(difference("the answers", plain, preloaded))
    if plain.count("7f0001") < 500:
        raise Failed(f"no addresses in the answers:\n{plain[:300]}")
    session.check_served(log)


@program("unbound")
def unbound(session):
    """unbound: two threads, 300 names of its own"""
    def configure(where, port):
        names = "".join(f' local-data: "host{i}.example. 60 IN A 127.0.1.{i % 250}"\n' for i in range(300))
        (where / "unbound.conf").write_text(
            f'server:\n interface: 127.0.0.1\n port: {port}\n num-threads: 2\n username: ""\n chroot: ""\n directory: "{where}"\n'
            f' pidfile: ""\n use-syslog: no\n do-daemonize: no\n module-config: "iterator"\n do-not-query-localhost: no\n rrset-roundrobin: no\n'
            f' local-zone: "example." static\n{names}remote-control:\n control-enable: no\n', encoding="utf-8")
        return ["unbound", "-d", "-c", where / "unbound.conf"]

    name_server(session, configure)


@program("dnsmasq-base:dnsmasq")
def dnsmasq(session):
    """dnsmasq: 300 names from a file"""
    def configure(where, port):
        (where / "hosts").write_text("".join(f"127.0.1.{i % 250} host{i}.example\n" for i in range(300)), encoding="utf-8")
        return ["dnsmasq", "--no-daemon", "--conf-file=/dev/null", f"--port={port}", "--listen-address=127.0.0.1",
                "--bind-interfaces", "--no-resolv", "--no-hosts", f"--addn-hosts={where}/hosts", "--pid-file=", "--local=/example/",
                f"--user={user_name()}", "--log-facility=-"]

    name_server(session, configure)


# ---- remote shells ----------------------------------------------------------------------------------------------------------

@program("openssh-server:/usr/sbin/sshd", "openssh-client:ssh")
def sshd(session):
    """OpenSSH's server and client, both with the library: keys, commands, 3 MB of output"""
    def once(preload):
        where = session.fresh("server")
        where.chmod(0o755)
        for name in ("key", "host"):
            session.client(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", where / name])
        port = free_port()
        (where / "sshd_config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {where}/host\nAuthorizedKeysFile {where}/key.pub\nStrictModes no\nUsePAM no\n"
            f"PidFile {where}/pid\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nPermitUserEnvironment no\n", encoding="utf-8")
        ssh = ["ssh", "-F", "/dev/null", "-p", port, "-i", where / "key", "-o", "StrictHostKeyChecking=no", "-o",
               f"UserKnownHostsFile={where}/known", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
               f"{user_name()}@127.0.0.1"]
        with session.serving(["/usr/sbin/sshd", "-D", "-e", "-f", where / "sshd_config"], preload, lambda: listens(port), cwd=where,
                             status=(0, 255)) as log:
            answers = [session.must([*ssh, command], preload, cwd=where, is_counted=False, stdin="abc\n").out for command in
                       ("echo first; seq 1000 | tail -1", "wc -c; head -c 3000000 /dev/zero | tr '\\0' x | sha256sum", "true")]
        return "".join(answers), log.read_text(errors="replace")

    if pwd.getpwuid(os.getuid()).pw_shell in ("", "/bin/false", "/usr/sbin/nologin"):
        raise Skipped("this user has no shell")
    if os.getuid() == 0:
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)   # where it confines itself to
    (plain, _), (preloaded, log) = session.pair(once)
    if plain != preloaded:
        raise Failed(difference("what the client got", plain, preloaded))
    session.check_served(log)

"""Metrics for Prometheus, and the dashboard for Grafana."""

import json
import os
import re
import shutil
import socket
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from conftest import WAIT, wait_for

METRIC = re.compile(r"\bmimalloc_\w+")


def metrics(text):
    return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}


def samples(text):
    return {METRIC.match(line)[0] for line in text.splitlines() if METRIC.match(line)}


def value(text, name, pid):
    found = re.search(rf'^{name}{{pid="{pid}",program="victim"}} (\S+)$', text, re.M)
    return float(found[1]) if found else None


@pytest.fixture
def server(env):
    process = subprocess.Popen([sys.executable, "-m", "mimalloc", "export", "--port", "0"], env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert line.startswith("serving at http://127.0.0.1:"), line + process.stderr.read()
    yield line.split()[-1]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=WAIT)


def get(url):
    with urllib.request.urlopen(url, timeout=WAIT) as answer:
        return answer.read().decode()


def test_once(command, start_victim):
    victim = start_victim()
    victim.tell("a")
    text = command("export", "--once").stdout
    assert value(text, "mimalloc_in_use_bytes", victim.pid) >= 20000 * 600
    assert value(text, "mimalloc_blocks", victim.pid) >= 20000
    assert value(text, "mimalloc_map_calls_total", victim.pid) >= 1
    assert value(text, "mimalloc_resident_bytes", victim.pid) >= 20000 * 600
    assert re.search(r"^mimalloc_processes 1.0$", text, re.M)
    assert [row["pid"] for row in json.loads(command("export", "--once", "--json").stdout)] == [victim.pid]


def test_served(start_victim, server):
    victim = start_victim()
    first = get(server)
    victim.tell("a")
    second = get(server)
    name = "mimalloc_in_use_bytes"
    assert value(second, name, victim.pid) >= value(first, name, victim.pid) + 20000 * 600
    victim.process.kill()
    victim.process.wait(timeout=WAIT)
    assert value(get(server), name, victim.pid) is None     # a process that is gone has no metrics
    with pytest.raises(urllib.error.HTTPError):
        get(server.replace("/metrics", "/other"))


def test_client_that_says_nothing(server):
    host, port = server.split("/")[2].split(":")
    with socket.create_connection((host, int(port))):
        assert "mimalloc_processes" in get(server)


def test_address_in_use(command, server):
    port = server.rpartition(":")[2].split("/")[0]
    assert "Nobody can listen at 127.0.0.1" in command("export", "--port", port, status=2).stderr


def test_dashboard_has_metrics_that_exist(command, start_victim):
    start_victim()
    names = samples(command("export", "--once").stdout)
    dashboard = json.loads(command("export", "--dashboard").stdout)
    targets = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries = [variable["query"] for variable in dashboard["templating"]["list"]]
    used = set(METRIC.findall(" ".join(targets + queries)))
    assert len(dashboard["panels"]) >= 10 and len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert used <= names, used - names
    assert all(METRIC.search(expr) for expr in targets)


def test_promtool(command, start_victim):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    start_victim()
    text = command("export", "--once").stdout
    run = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=WAIT, check=False)
    assert run.returncode == 0 and run.stderr + run.stdout == "", run.stderr + run.stdout


def test_scraped_by_prometheus(start_victim, server, tmp_path):
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed (Debian: prometheus)")
    victim = start_victim()
    victim.tell("a")
    target = server.split("/")[2]
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: mimalloc\n    static_configs: [{targets: ['%s']}]\n" % target)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    env = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
                                    f"--web.listen-address={listen}"], stdout=log, stderr=log, env=env)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def found():
        assert process.poll() is None, (tmp_path / "log").read_text()
        try:
            with opener.open(f"http://{listen}/api/v1/query?query=mimalloc_in_use_bytes", timeout=5) as answer:
                result = json.load(answer)["data"]["result"]
        except OSError:
            time.sleep(0.2)
            return False
        return any(each["metric"]["pid"] == str(victim.pid) and float(each["value"][1]) > 0 for each in result)

    try:
        wait_for(found)
    finally:
        process.terminate()
        process.wait(timeout=WAIT)

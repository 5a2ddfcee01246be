"""The statistics of all publishing processes as metrics of Prometheus."""

import pathlib
import sys
import threading

from . import output, page, proc
from .errors import ToolError

PREFIX = "mimalloc_"
LABELS = ["pid", "program"]
DASHBOARD = pathlib.Path(__file__).resolve().parent / "data" / "dashboard.json"

# Gauges: (name, field, help).
GAUGES = [
    ("in_use_bytes", "malloc_requested", "Bytes in blocks that the program has."),
    ("in_use_small_bytes", "malloc_normal", "Of these, bytes in blocks of the size classes."),
    ("in_use_large_bytes", "malloc_huge", "Of these, bytes in larger blocks."),
    ("blocks", "malloc_normal_count", "Blocks of the size classes that the program has."),
    ("pages", "pages", "Pages: runs of memory with blocks of one size."),
    ("page_bytes", "page_committed", "Bytes in pages."),
    ("pages_without_thread", "pages_abandoned", "Pages that belong to no thread and have free blocks."),
    ("committed_bytes", "committed", "Bytes that may be backed with memory."),
    ("reserved_bytes", "reserved", "Bytes of address space."),
    ("threads", "threads", "Threads that have allocated."),
]
PEAKS = [
    ("committed_peak_bytes", "committed", "The most bytes that may have been backed with memory at a time."),
    ("in_use_large_peak_bytes", "malloc_huge", "The most bytes in larger blocks at a time."),
]
COUNTERS = [
    ("purged_bytes", "purged", "Bytes given back to the system."),
    ("reset_bytes", "reset", "Bytes offered to the system."),
    ("map_calls", "mmap_calls", "System calls that map memory."),
    ("commit_calls", "commit_calls", "System calls that make memory usable."),
    ("purge_calls", "purge_calls", "System calls that give memory back."),
    ("large_blocks", "malloc_huge_count", "Larger blocks that were allocated."),
    ("guarded_blocks", "malloc_guarded_count", "Blocks with a guard page."),
    ("pages_extended", "pages_extended", "How often more of a page was put to use."),
    ("pages_retired", "pages_retire", "Pages that became empty and were given back."),
    ("page_searches", "page_searches_count", "Searches for a page with free blocks."),
]


def _value(stats, field, part="current"):
    value = stats.get(field)
    return value.get(part) if isinstance(value, dict) else value


class Collector:
    """Reads the pages when it is asked for metrics."""

    def __init__(self):
        self.pages = page.live_pages

    def describe(self):
        return []

    def _family(self, kind, name, text, values):
        family = kind(PREFIX + name, text, labels=LABELS)
        for labels, value in values:
            if value is not None:
                family.add_metric(labels, value)
        return family

    def collect(self):
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
        pages = [(each, [str(each.pid), each.program]) for each in self.pages()]
        yield GaugeMetricFamily(PREFIX + "processes", "Processes that publish their statistics.", value=len(pages))
        for part, rows in (("current", GAUGES), ("peak", PEAKS)):
            for name, field, text in rows:
                yield self._family(GaugeMetricFamily, name, text, [(labels, _value(p.stats, field, part)) for p, labels in pages])
        for name, field, text in COUNTERS:
            yield self._family(CounterMetricFamily, name, text, [(labels, _value(p.stats, field)) for p, labels in pages])
        yield self._family(GaugeMetricFamily, "resident_bytes", "Resident memory of the process.",
                           [(labels, proc.resident(p.pid)) for p, labels in pages])
        yield self._family(GaugeMetricFamily, "age_seconds", "Time since the process has written its statistics.",
                           [(labels, p.age) for p, labels in pages])
        info = GaugeMetricFamily(PREFIX + "info", "The version of the library.", labels=[*LABELS, "version"])
        for each, labels in pages:
            info.add_metric([*labels, ".".join(map(str, each.version))], 1)
        yield info


def registry():
    try:
        from prometheus_client import CollectorRegistry
    except ImportError as error:
        raise ToolError("`mimalloc export` needs the package prometheus-client (Debian: python3-prometheus-client).") from error
    result = CollectorRegistry()
    result.register(Collector())
    return result


def text():
    from prometheus_client import generate_latest
    return generate_latest(registry()).decode("utf-8")


def serve(address, port):
    """Starts to serve in a thread of its own; returns the server."""
    import socketserver
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
    from prometheus_client import make_wsgi_app
    app = make_wsgi_app(registry())

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_):
            pass

    class Threads(socketserver.ThreadingMixIn, WSGIServer):
        """One for each request: a client that says nothing holds up no other."""
        daemon_threads = True

    def only_metrics(environ, start_response):
        if environ["PATH_INFO"] not in ("/metrics", "/"):
            start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
            return [b"There is /metrics here.\n"]
        return app(environ, start_response)

    try:
        server = make_server(address, port, only_metrics, Threads, Quiet)
    except (OSError, OverflowError) as error:
        raise ToolError(f"Nobody can listen at {address}, port {port}: {error}.") from error
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def export(once, address, port, dashboard, as_json):
    if dashboard:
        sys.stdout.write(DASHBOARD.read_text(encoding="utf-8"))
    elif as_json:
        output.print_json([each.as_json() for each in page.live_pages()])
    elif once:
        sys.stdout.write(text())
    else:
        registry()
        server = serve(address, port)
        print(f"serving at http://{server.server_address[0]}:{server.server_address[1]}/metrics", flush=True)
        threading.Event().wait()

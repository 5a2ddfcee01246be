"""A table of all publishing processes, which follows them in a terminal."""

import dataclasses
import time

from . import output, page, proc
from .statistics import current, peak

COLUMNS = [("PID", True), ("PROGRAM", False), ("IN USE", True), ("COMMITTED", True), ("PEAK", True), ("RSS", True),
           ("BLOCKS", True), ("PAGES", True), ("THREADS", True), ("PURGED/S", True), ("CALLS/S", True), ("AGE", True)]
CALLS = ("mmap_calls", "commit_calls", "purge_calls", "reset_calls")
OLD_SECONDS = 5     # an older page is shown as such
NOTHING = ("No process publishes its statistics. Start one with MIMALLOC_PUBLISH=1, or by `mimalloc run --publish=process -- "
           "PROGRAM`.")


@dataclasses.dataclass
class Sample:
    page: page.Page
    resident: int
    purged_rate: float      # per second; None: not known yet
    call_rate: float

    def as_json(self):
        stats = self.page.stats
        return {"pid": self.page.pid, "program": self.page.program, "command": proc.command_line(self.page.pid),
                "in_use": current(stats, "malloc_requested"), "committed": current(stats, "committed"),
                "committed_peak": peak(stats, "committed"), "resident": self.resident,
                "blocks": current(stats, "malloc_normal_count"), "pages": current(stats, "pages"), "threads": current(stats, "threads"),
                "purged_per_second": self.purged_rate, "calls_per_second": self.call_rate,
                "age_seconds": round(self.page.age, 3)}


def _calls(stats):
    return sum(current(stats, name) or 0 for name in CALLS)


def _rate(new, old, of):
    """The increase of a number per second of the process's own updates."""
    elapsed = new.updated - old.updated if old else 0
    return max(0.0, (of(new.stats) - of(old.stats)) / elapsed) if elapsed > 0 else None


def sample(pids, before):
    """`before`: the pages of the last time, by pid and start."""
    samples = []
    for each in page.live_pages(pids=pids):
        old = before.get((each.pid, each.started))
        samples.append(Sample(each, proc.resident(each.pid), _rate(each, old, lambda stats: current(stats, "purged") or 0),
                              _rate(each, old, _calls)))
    return sorted(samples, key=lambda s: -(current(s.page.stats, "committed") or 0))


def _row(s):
    from rich.markup import escape
    data = s.as_json()
    age = output.seconds(data["age_seconds"])
    return (str(data["pid"]), escape(data["program"]), f"[bold]{output.size(data['in_use'])}[/bold]",
            output.size(data["committed"]), output.size(data["committed_peak"]), output.size(data["resident"]),
            output.count(data["blocks"]), output.count(data["pages"]), output.count(data["threads"]),
            output.size(data["purged_per_second"]), "-" if data["calls_per_second"] is None else f"{data['calls_per_second']:.0f}",
            f"[yellow]{age}[/yellow]" if data["age_seconds"] > OLD_SECONDS else age)


def _live(pids, interval, count):
    from rich.live import Live
    from rich.text import Text
    before, n = {}, 0
    with Live(console=output.console(), auto_refresh=False, transient=False) as live:
        while count is None or n < count:
            samples = sample(pids, before)
            before = {(s.page.pid, s.page.started): s.page for s in samples}
            live.update(output.table(COLUMNS, map(_row, samples)) if samples else Text(NOTHING), refresh=True)
            n += 1
            if n != count:
                time.sleep(interval)


def top(pids, interval, count, as_json):
    for pid in pids:
        page.of_process(pid)
    if output.is_terminal() and not as_json:
        _live(pids, interval, count)
        return
    before = {}
    for i in range(count or 1):
        if i > 0:
            time.sleep(interval)
        samples = sample(pids, before)
        before = {(s.page.pid, s.page.started): s.page for s in samples}
        if as_json:
            output.print_json([s.as_json() for s in samples])
        elif samples:
            print(output.plain_table(COLUMNS, list(map(_row, samples))), flush=True)
        else:
            print(NOTHING, flush=True)

#!/usr/bin/env python3
"""Sums up a decoded trace of the events of mimalloc: what was allocated by size and by call site, what was live at the end, and
the peak.

  summary.py [--process PID] [--top N] [--symbols FILE] TRACE

TRACE is XML or CSV.  XML is what `tracerpt trace.etl -of XML -o trace.xml` writes, with the option -import mimalloc-etw.man or
without it: then the events have their data as hexadecimal digits.  CSV is what `tracerpt trace.etl -of CSV` writes, or a table
with a header, as wpaexporter writes it, that has columns for the event (Event Name, Event ID or Task Name), Address and Size;
Process or PID, and Stack, if they are there.

--process   only that process; without it, each process has a summary
--top       how many sizes and call sites are listed (20)
--symbols   names for addresses in stacks: lines of `START-END NAME` or `ADDRESS NAME`, in hexadecimal digits
--depth     how many frames of a stack make a call site (4); those of mimalloc.dll are left out

Exit status: 0: done; 1: the trace cannot be summed up, and a message says why; 2: wrong usage."""

import argparse
import bisect
import collections
import csv
import dataclasses
import re
import struct
import sys
import xml.etree.ElementTree as ElementTree

PROVIDER = "53e6c9f1-0b8d-4a57-9c3e-7d2a41b86f05"
ALLOC, FREE = 100, 101
NAMES = {"etw_mi_alloc": ALLOC, "etw_mi_free": FREE, "alloc": ALLOC, "free": FREE}
OWN = re.compile(r"^mimalloc[^!]*!", re.I)


class Trouble(Exception):
    """The trace cannot be summed up."""


@dataclasses.dataclass
class Event:
    kind: int
    process: int
    address: int
    size: int
    stack: tuple = ()  # of text, the innermost first
    key: tuple = ()  # (process, thread, time) by which a later event brings its stack


# ---- XML --------------------------------------------------------------------------------------------------------------------

def number(text, what):
    """Decimal, or hexadecimal with 0x; tracerpt writes spaces around, and commas between thousands."""
    text = (text or "").strip().strip('"').replace(",", "")
    try:
        return int(text, 16) if text.lower().startswith("0x") else int(text)
    except ValueError:
        raise Trouble(f"{what}: '{text[:40]}' is no number") from None


def local(tag):
    return tag.rpartition("}")[2]


def child(element, *names):
    for name in names:
        element = next((e for e in element if local(e.tag) == name), None)
        if element is None:
            return None
    return element


def raw_values(element, where):
    """Address and size from the bytes of the event, where nobody has decoded them."""
    payload = next((e for e in element.iter() if local(e.tag) in ("EventPayload", "BinaryEventData", "Binary")), None)
    if payload is None or not payload.text:
        raise Trouble(f"{where}: the event has neither Address and Size, nor its bytes")
    try:
        return struct.unpack("<QQ", bytes.fromhex(payload.text.strip()))
    except (ValueError, struct.error):
        raise Trouble(f"{where}: '{payload.text.strip()[:40]}' are not the 16 bytes of an event") from None


def data_of(element):
    data = child(element, "EventData")
    return {e.get("Name", ""): (e.text or "").strip() for e in data if local(e.tag) == "Data"} if data is not None else {}


def key_of(element, process, thread, where):
    stamp = next((e.text for e in element.iter() if local(e.tag) == "EventTimestamp" and e.text), None)
    return (process, thread, number(stamp, where)) if stamp else ()


def stack_in(element):
    """Frames within the event itself."""
    stack = child(element, "Stack")
    return tuple(e.text.strip() for e in stack if e.text) if stack is not None else ()


def xml_block(element, event_id, where):
    execution = child(element, "System", "Execution")
    process = number(execution.get("ProcessID", "0"), where) if execution is not None else 0
    thread = number(execution.get("ThreadID", "0"), where) if execution is not None else 0
    data = data_of(element)
    if "Address" in data and "Size" in data:
        address, size = number(data["Address"], where), number(data["Size"], where)
    else:
        address, size = raw_values(element, where)
    return Event(event_id, process, address, size, stack_in(element), key_of(element, process, thread, where))


def xml_stack(element, where):
    """The key and the frames of the kernel's event for a stack; None if it is another event."""
    data = data_of(element)
    if "EventTimeStamp" not in data or "Stack1" not in data:
        return None
    # MOF: the format of StackProcess is hexadecimal, with or without 0x
    process = int(data.get("StackProcess", "0").removeprefix("0x") or "0", 16)
    key = (process, number(data.get("StackThread", "0"), where), number(data["EventTimeStamp"], where))
    return key, tuple(data[f"Stack{i}"] for i in range(1, 193) if data.get(f"Stack{i}"))


def read_xml(path):
    events, stacks, n = [], {}, 0
    try:
        for _, element in ElementTree.iterparse(path, events=("end",)):
            if local(element.tag) != "Event":
                continue
            n += 1
            where = f"event {n}"
            provider, event_id = child(element, "System", "Provider"), child(element, "System", "EventID")
            guid = (provider.get("Guid", "") if provider is not None else "").strip("{}").lower()
            if guid == PROVIDER:
                kind = number(event_id.text if event_id is not None else "", where)
                if kind in (ALLOC, FREE):
                    events.append(xml_block(element, kind, where))
            elif stack := xml_stack(element, where):
                stacks[stack[0]] = stack[1]
            element.clear()
    except ElementTree.ParseError as error:
        raise Trouble(f"not well-formed XML: {error}") from None
    if n == 0:
        raise Trouble("XML, but not of a trace: it has no element Event")
    for event in events:
        event.stack = event.stack or stacks.get(event.key, ())
    return events


# ---- CSV --------------------------------------------------------------------------------------------------------------------

COLUMNS = {
    "event": ("event name", "task name", "event", "name"), "id": ("event id", "id"), "type": ("type",),
    "process": ("pid", "process id", "process"), "address": ("address", "address (field 1)"), "size": ("size", "size (field 2)"),
    "stack": ("stack", "stack (frame tags)"), "data": ("user data",), "provider": ("provider name", "provider guid", "provider")}


def columns_of(header):
    names = [name.strip().strip('"').lower() for name in header]
    return {what: next((names.index(name) for name in accepted if name in names), None) for what, accepted in COLUMNS.items()}


def kind_in(row, at):
    if at["id"] is not None and at["id"] < len(row) and row[at["id"]].strip() in (str(ALLOC), str(FREE)):
        return int(row[at["id"]])
    name = row[at["event"]].strip().strip('"').lower() if at["event"] is not None and at["event"] < len(row) else ""
    return NAMES.get(name.rpartition("/")[2])


def is_ours(row, at, has_provider):
    """Does the event come from mimalloc?  tracerpt names the provider in the event's name."""
    cell = row[at["provider"]] if has_provider else row[at["event"]] if at["event"] is not None else ""
    cell = cell.strip().strip('"{}').lower()
    name = cell.rpartition("/")[0] or cell
    return name in ("mimalloc", PROVIDER) or (not has_provider and cell in NAMES)


def process_in(text):
    """`1234`, `0x4D2` or `prog.exe (1234)`."""
    match = re.search(r"\((\d+)\)\s*$", text)
    return int(match[1]) if match else number(text, "process")


def frames_in(stack):
    """A stack in one cell: the outermost first if it begins with [Root], as Windows Performance Analyzer has it."""
    separator = r"(?<!operator)/" if stack.lstrip().startswith("[Root]/") else r"[\n;]"
    frames = [f.strip() for f in re.split(separator, stack)]
    frames = [f for f in frames if f not in ("", "n/a")]
    return tuple(reversed(frames[1:])) if frames[:1] == ["[Root]"] else tuple(frames)


def cell_at(row, at, where):
    if at >= len(row):
        raise Trouble(f"{where}: the row ends before its address and size")
    return row[at]


def read_csv(path):
    events = []
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file, skipinitialspace=True)
        at = columns_of(next(rows, []))
        has_fields = at["address"] is not None and at["size"] is not None
        if at["event"] is None and at["id"] is None or not (has_fields or at["data"] is not None):
            raise Trouble("neither XML nor a table of events: its first line has no columns for the event, Address and Size")
        address_at, size_at = (at["address"], at["size"]) if has_fields else (at["data"], at["data"] + 1)
        has_provider = at["provider"] is not None
        for row in rows:
            kind = kind_in(row, at) if row else None
            if kind is None or not is_ours(row, at, has_provider):
                continue
            where = f"line {rows.line_num}"
            process = process_in(row[at["process"]]) if at["process"] is not None else 0
            stack = row[at["stack"]] if at["stack"] is not None and at["stack"] < len(row) else ""
            events.append(Event(kind, process, number(cell_at(row, address_at, where), where),
                                number(cell_at(row, size_at, where), where), frames_in(stack)))
    return events


def read(path):
    with open(path, "rb") as file:
        start = file.read(4096)
    if not start:
        raise Trouble("the file is empty")
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        if b"<" not in start[:6]:
            raise Trouble("a text of UTF-16; save it as UTF-8")
        return read_xml(path)
    if b"\0" in start:
        raise Trouble("a binary file: decode the trace first, with `tracerpt trace.etl -of XML -o trace.xml`")
    if start.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<"):
        return read_xml(path)
    try:
        return read_csv(path)
    except UnicodeDecodeError:
        raise Trouble("neither XML nor CSV of UTF-8") from None


# ---- symbols ----------------------------------------------------------------------------------------------------------------

class Symbols:
    def __init__(self, path=None):
        self.starts, self.rows = [], []
        for number_of_line, line in enumerate(open(path, encoding="utf-8") if path else (), 1):
            match = re.match(r"\s*(?:0x)?([0-9a-f]+)(?:\s*-\s*(?:0x)?([0-9a-f]+))?\s+(\S.*?)\s*$", line, re.I)
            if line.strip() and not match:
                raise Trouble(f"{path}: line {number_of_line}: neither `START-END NAME` nor `ADDRESS NAME`")
            if match:
                self.rows.append((int(match[1], 16), int(match[2], 16) if match[2] else None, match[3]))
        self.rows.sort(key=lambda row: row[0])
        self.starts = [row[0] for row in self.rows]

    def name(self, frame):
        """Of an address the module or function in which it lies; names stay as they are."""
        if not re.fullmatch(r"0x[0-9a-fA-F]+", frame):
            return frame
        address = int(frame, 16)
        i = bisect.bisect_right(self.starts, address) - 1
        if i < 0 or (self.rows[i][1] is not None and address >= self.rows[i][1]):
            return frame
        return self.rows[i][2]


# ---- sums -------------------------------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Sum:
    n: int = 0  # allocated, ever
    size: int = 0
    n_live: int = 0
    live: int = 0

    def add(self, size):
        self.n, self.size, self.n_live, self.live = self.n + 1, self.size + size, self.n_live + 1, self.live + size

    def remove(self, size):
        self.n_live, self.live = self.n_live - 1, self.live - size


@dataclasses.dataclass
class Summary:
    total: Sum = dataclasses.field(default_factory=Sum)
    sizes: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(Sum))
    sites: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(Sum))
    peak: int = 0
    n_at_peak: int = 0
    n_freed: int = 0
    n_unknown: int = 0  # freed, but allocated before the trace
    n_twice: int = 0  # allocated, though not freed: events are lost
    blocks: dict = dataclasses.field(default_factory=dict)


def size_class(size):
    """(from, to): four for each doubling, as the library's sizes lie; 16 bytes apart below 128."""
    if size <= 128:
        to = max(16, -(-size // 16) * 16)
        return to - 15 if to > 16 else 0, to
    width = 1 << ((size - 1).bit_length() - 3)
    to = -(-size // width) * width
    return to - width + 1, to


def site_of(event, symbols, depth):
    frames = [name for name in map(symbols.name, event.stack) if not OWN.match(name)]
    return " < ".join(frames[:depth]) if frames else "(no stack)"


def remove(summary, event):
    block = summary.blocks.pop(event.address, None)
    if block is None:
        summary.n_unknown += 1
        return
    size, site = block
    for each in (summary.total, summary.sizes[size_class(size)], summary.sites[site]):
        each.remove(size)


def sum_up(events, symbols, depth):
    """By process."""
    summaries = collections.defaultdict(Summary)
    for event in events:
        summary = summaries[event.process]
        if event.kind == FREE:
            summary.n_freed += 1
            remove(summary, event)
            continue
        if event.address in summary.blocks:
            summary.n_twice += 1
            remove(summary, event)
        site = site_of(event, symbols, depth)
        summary.blocks[event.address] = (event.size, site)
        for each in (summary.total, summary.sizes[size_class(event.size)], summary.sites[site]):
            each.add(event.size)
        if summary.total.live > summary.peak:
            summary.peak, summary.n_at_peak = summary.total.live, summary.total.n_live
    return summaries


def print_table(title, rows, top):
    rows = sorted(rows, key=lambda row: (-row[1].size, row[0]))
    print(f"\n{title:<24}{'allocated':>12}{'bytes':>16}{'live at end':>14}{'bytes':>16}")
    for name, each in rows[:top]:
        label = f"{name[0]}..{name[1]}" if isinstance(name, tuple) else None
        print(f"{label or '':<24}{each.n:>12}{each.size:>16}{each.n_live:>14}{each.live:>16}" + ("" if label else f"  {name}"))
    if len(rows) > top:
        print(f"... and {len(rows) - top} more (--top)")


def print_summary(process, summary, top):
    total = summary.total
    print(f"process {process}: {total.n} blocks allocated, {total.size} bytes; {summary.n_freed} freed")
    print(f"peak: {summary.peak} bytes in {summary.n_at_peak} blocks; live at the end: {total.live} bytes in {total.n_live} blocks")
    if summary.n_unknown:
        print(f"{summary.n_unknown} blocks were freed that the trace does not allocate: it began later than the program")
    if summary.n_twice:
        print(f"{summary.n_twice} addresses were allocated twice without a free: events are lost, record with more buffers")
    print_table("size", summary.sizes.items(), top)
    print_table("call site", summary.sites.items(), top)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", metavar="TRACE")
    parser.add_argument("--process", type=lambda text: int(text, 0), metavar="PID")
    parser.add_argument("--top", type=int, default=20, metavar="N")
    parser.add_argument("--depth", type=int, default=4, metavar="N")
    parser.add_argument("--symbols", metavar="FILE")
    args = parser.parse_args()
    if args.top < 1 or args.depth < 1:
        parser.error("--top and --depth are at least 1")
    try:
        events = read(args.trace)
        if args.process is not None:
            events = [event for event in events if event.process == args.process]
        if not events:
            raise Trouble("it has no events of mimalloc" + (f" of process {args.process}" if args.process is not None else "") +
                          ": the library has to be built with MI_TRACK_ETW, and the recording to name its provider")
        summaries = sum_up(events, Symbols(args.symbols), args.depth)
    except (OSError, Trouble) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else error
        print(f"summary.py: {args.trace}: {what}", file=sys.stderr)
        return 1
    for i, (process, summary) in enumerate(sorted(summaries.items())):
        print("\n" * (i > 0), end="")
        print_summary(process, summary, args.top)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Tests of tools/etw: the summary of a decoded trace, and that the manifest and the profile name what the library writes.

A known sequence of events is written in each of the forms that are decoded traces.  What the summary must say is computed here in
another way: by looking at the whole sequence for each number.  --seed: another sequence."""

import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SUMMARY = ROOT / "tools/etw/summary.py"
GUID = "{53E6C9F1-0B8D-4A57-9C3E-7D2A41B86F05}"
KERNEL = "{def2fe46-7bd6-4b80-bd94-f57fe20d0ce3}"
SITES = {  # innermost first; those of the library are no part of a call site
    "a": ["mimalloc.dll!mi_malloc", "prog.exe!read", "prog.exe!main"],
    "b": ["mimalloc-etw.dll!mi_zalloc", "prog.exe!parse", "prog.exe!read", "prog.exe!main", "ntdll.dll!start", "far"],
    "c": ["other.dll!work"]}
ADDRESSES = {"mimalloc.dll!mi_malloc": 0x10, "prog.exe!read": 0x2000, "prog.exe!main": 0x3000, "mimalloc-etw.dll!mi_zalloc": 0x40,
             "prog.exe!parse": 0x5000, "ntdll.dll!start": 0x6000, "far": 0x7000, "other.dll!work": 0x8000}
n_checks = 0


def check(what, *values):
    global n_checks
    n_checks += 1
    assert what, values


def make_events(chance, n=3000):
    """[(kind, process, thread, address, size, site)] with frees of blocks from before the trace."""
    events, live = [], {100: [], 200: []}
    for _ in range(n):
        process = chance.choice([100, 100, 200])
        if live[process] and chance.random() < 0.45:
            address, size = live[process].pop(chance.randrange(len(live[process])))
            events.append((101, process, chance.randrange(3), address, size, "a"))
        elif chance.random() < 0.02:
            events.append((101, process, 1, 0x7FFF00000000 + 16 * len(events), 8, "a"))
        else:
            size = chance.choice([0, 1, 16, 17, 128, 129, 160, 161, 1000, 4096, 4097, 123456, 5 << 20])
            address = 0x7FFFFFFF0000 - 0x1000000 * len(live[process]) if chance.random() < 0 else 0x20000000000 + len(events) * (8 << 20)
            live[process].append((address, size))
            events.append((100, process, chance.randrange(3), address, size, chance.choice("aabc")))
    return events


# ---- what it must say -----------------------------------------------------------------------------------------------------------

def expected(events, process):
    mine = [e for e in events if e[1] == process]
    allocated = [e for e in mine if e[0] == 100]
    freed = [e for e in mine if e[0] == 101]
    freed_addresses = {e[3] for e in freed}  # each address is allocated once in the sequence
    live = [e for e in allocated if e[3] not in freed_addresses]
    known = {e[3] for e in allocated}
    peak = 0
    running = 0
    for e in mine:
        running += e[4] if e[0] == 100 else -e[4] if e[3] in known else 0
        peak = max(peak, running)
    return {"n": len(allocated), "bytes": sum(e[4] for e in allocated), "freed": len(freed), "live": len(live),
            "live bytes": sum(e[4] for e in live), "peak": peak, "unknown": sum(e[3] not in known for e in freed),
            "by": lambda of: {key: (len(a := [e for e in allocated if of(e) == key]), sum(e[4] for e in a),
                                    len(b := [e for e in live if of(e) == key]), sum(e[4] for e in b))
                              for key in {of(e) for e in allocated}}}


# For the sizes above, by hand.
CLASSES = {0: "0..16", 1: "0..16", 16: "0..16", 17: "17..32", 128: "113..128", 129: "129..160", 160: "129..160", 161: "161..192",
           1000: "897..1024", 4096: "3585..4096", 4097: "4097..5120", 123456: "114689..131072", 5 << 20: "4194305..5242880"}


def site_text(site):
    return {"a": "prog.exe!read < prog.exe!main", "b": "prog.exe!parse < prog.exe!read < prog.exe!main < ntdll.dll!start",
            "c": "other.dll!work"}[site]


def check_summary(said, events, process, has_stacks):
    want = expected(events, process)
    part = said[said.index(f"process {process}:"):].split("\nprocess ")[0]
    check(f"process {process}: {want['n']} blocks allocated, {want['bytes']} bytes; {want['freed']} freed" in part, want, part)
    check(f"peak: {want['peak']} bytes in " in part, want, part)
    check(f"live at the end: {want['live bytes']} bytes in {want['live']} blocks" in part, want, part)
    check((f"{want['unknown']} blocks were freed" in part) == (want["unknown"] > 0), want, part)
    sizes = {m[1]: tuple(map(int, m[2].split())) for m in re.finditer(r"^(\d+\.\.\d+) +((?:\d+ *){4})$", part, re.M)}
    check(sizes == want["by"](lambda e: CLASSES[e[4]]), sizes, want["by"](lambda e: CLASSES[e[4]]))
    sites = {m[2]: tuple(map(int, m[1].split())) for m in re.finditer(r"^ +((?:\d+ +){4})(\S.*)$", part, re.M)}
    wanted = want["by"](lambda e: site_text(e[5])) if has_stacks else want["by"](lambda e: "(no stack)")
    check(sites == wanted, sites, wanted)


# ---- the forms ------------------------------------------------------------------------------------------------------------------

def xml_event(guid, event_id, process, thread, inside):
    return (f'<Event xmlns="http://schemas.microsoft.com/win/2004/08/events/event"><System><Provider Name="x" Guid="{guid}" />'
            f"<EventID>{event_id}</EventID><Version>0</Version><Level>4</Level><Execution ProcessID=\"{process}\" "
            f'ThreadID="{thread}" ProcessorID="0" /></System>{inside}</Event>\n')


def as_xml(events, form):
    """`form`: decoded, raw, walked (stacks in events of their own), within (stacks in the event)."""
    out = ['<?xml version="1.0"?>\n<Events>\n']
    for i, (kind, process, thread, address, size, site) in enumerate(events):
        inside = (f'<EventData><Data Name="Address">0x{address:X}</Data><Data Name="Size">     {size}</Data></EventData>'
                  if form != "raw" else "<ProcessingErrorData><ErrorCode>15003</ErrorCode><EventPayload>" +
                  (address.to_bytes(8, "little") + size.to_bytes(8, "little")).hex().upper() + "</EventPayload></ProcessingErrorData>")
        if form == "walked":
            inside += f"<ExtendedTracingInfo><EventTimestamp>{1000 + i}</EventTimestamp></ExtendedTracingInfo>"
        if form == "within":
            inside += "<Stack>" + "".join(f"<Address>{f}</Address>" for f in SITES[site]) + "</Stack>"
        out.append(xml_event(GUID, kind, process, thread, inside))
        if form == "walked":
            frames = "".join(f'<Data Name="Stack{k}">0x{ADDRESSES[f] + 5:X}</Data>' for k, f in enumerate(SITES[site], 1))
            out.append(xml_event(KERNEL, 0, 4, 8, f'<EventData><Data Name="EventTimeStamp">{1000 + i}</Data><Data Name="StackProcess">'
                                 f'0x{process:X}</Data><Data Name="StackThread">{thread}</Data>{frames}</EventData>'))
        if i % 100 == 0:  # events of others
            out.append(xml_event("{00000000-0000-0000-0000-000000000001}", 100, process, thread, "<EventData></EventData>"))
            out.append(xml_event(GUID, 7, process, thread, ""))
    return "".join(out) + "</Events>\n"


def as_tracerpt_csv(events):
    out = ["         Event Name,       Type,   Event ID,    Version,    Channel,      Level,     Opcode,       Task,            Keyword,"
           "        PID,        TID,  User Data\n"]
    for kind, process, thread, address, size, _ in events:
        out.append(f"           mimalloc,          0,        {kind},          0,          0,          4,          0,          0,"
                   f" 0x0000000000000001, 0x{process:08X}, 0x{thread:08X}, 0x{address:X},     {size}\n")
        out.append(f"           EventTrace,     Header,        100, 0, 0, 0, 0, 0, 0x0, 0x{process:08X}, 0x0, 65536, 83951878\n")
    return "".join(out)


def as_table(events):
    out = ["Process,Provider Name,Task Name,Event ID,Address,Size,Stack\n"]
    for kind, process, _, address, size, site in events:
        stack = "/".join(["[Root]", *reversed(SITES[site])])
        out.append(f'prog.exe ({process}),mimalloc,,{kind},0x{address:x},"{size:,}",{stack}\n')
        out.append(f"prog.exe ({process}),Other,,100,0x1,1,n/a\n")
    return "".join(out)


def symbols():
    return "".join(f"{address:x} - 0x{address + 0xF:x} {name}\n" for name, address in ADDRESSES.items())


# ---- tests ----------------------------------------------------------------------------------------------------------------------

class Bench:
    def __init__(self, where):
        self.where = pathlib.Path(where)

    def run(self, text, *arguments, status=0, name="trace"):
        path = self.where / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        done = subprocess.run([sys.executable, SUMMARY, *arguments, path], capture_output=True, text=True, timeout=60, check=False)
        check(done.returncode == status, arguments, done)
        check(status != 1 or (done.stdout == "" and done.stderr.startswith(f"summary.py: {path}: ")), done)
        return done.stdout + done.stderr


def test_forms(bench, seed):
    events = make_events(random.Random(seed))
    (bench.where / "symbols").write_text(symbols(), encoding="utf-8")
    named = ("--symbols", bench.where / "symbols")
    for text, has_stacks, arguments in (
            (as_xml(events, "decoded"), False, ()), (as_xml(events, "raw"), False, ()), (as_xml(events, "walked"), True, named),
            (as_xml(events, "within"), True, ()), (as_xml(events, "decoded").encode("utf-16"), False, ()),
            (as_tracerpt_csv(events), False, ()), (as_table(events), True, ()), ("\ufeff" + as_table(events), True, ())):
        if isinstance(text, bytes):
            text = text.decode("utf-16").replace('version="1.0"', 'version="1.0" encoding="utf-16"').encode("utf-16")
        said = bench.run(text, *arguments)
        for process in (100, 200):
            check_summary(said, events, process, has_stacks)
        one = bench.run(text, *arguments, "--process", "200")
        check("process 100:" not in one, one)
        check_summary(one, events, 200, has_stacks)


def test_small(bench):
    """By hand."""
    events = [(100, 1, 1, 0x1000, 24, "a"), (100, 1, 1, 0x2000, 100, "b"), (101, 1, 2, 0x1000, 24, "a"), (100, 1, 1, 0x1000, 8, "a")]
    said = bench.run(as_xml(events, "within"))
    for line in ("process 1: 3 blocks allocated, 132 bytes; 1 freed\n",
                 "peak: 124 bytes in 2 blocks; live at the end: 108 bytes in 2 blocks\n"):
        check(line in said, line, said)
    said = bench.run(as_xml([*events, (100, 1, 1, 0x2000, 50, "a"), (101, 1, 1, 0x9999, 1, "a")], "decoded"))
    check("1 addresses were allocated twice without a free" in said and "1 blocks were freed that" in said, said)
    check("live at the end: 58 bytes in 2 blocks" in said, said)
    said = bench.run(as_xml(events, "within"), "--top", "1", "--depth", "1")
    check("... and 2 more (--top)" in said and "prog.exe!parse\n" in said and "<" not in said, said)
    check("0x15" in bench.run(as_xml(events, "walked")), "addresses without names")


def test_errors(bench):
    one = [(100, 1, 1, 0x1000, 24, "a")]
    for text, says in (
            ("", "the file is empty"), (b"\1\0\0\0etl", "decode the trace first"), ("<Events><Event>", "not well-formed XML"),
            ("<html></html>", "no element Event"), ("a,b\n1,2\n", "no columns for the event"), (b"caf\xe9,\xe9\n", "UTF-8"),
            (as_xml([], "decoded").replace("</Events>", xml_event(KERNEL, 1, 1, 1, "") + "</Events>"), "no events of mimalloc"),
            (as_xml(one, "decoded").replace("0x1000", "here"), "'here' is no number"),
            (as_xml(one, "decoded").replace("Address", "Adresse"), "neither Address and Size"),
            (as_xml(one, "raw").replace("0000</EventPayload>", "</EventPayload>"), "not the 16 bytes"),
            (as_table(one).replace("0x1000", "none"), "'none' is no number"), (as_tracerpt_csv(one).replace(",     24", ""), "line 2"),
            ("Event ID,Address,Size\n", "no events of mimalloc"), ("a,b,c".encode("utf-16"), "UTF-16")):
        check(says in (said := bench.run(text, status=1)), says, said)
    check("of process 77" in bench.run(as_xml(one, "decoded"), "--process", "77", status=1), "another process")
    (bench.where / "bad").write_text("no symbols\n", encoding="utf-8")
    check("bad: line 1" in bench.run(as_xml(one, "decoded"), "--symbols", bench.where / "bad", status=1), "symbols")
    check("--top" in bench.run(as_xml(one, "decoded"), "--top", "0", status=2), "usage")
    done = subprocess.run([sys.executable, SUMMARY, bench.where / "none"], capture_output=True, text=True, check=False)
    check(done.returncode == 1 and "No such file" in done.stderr, done)


def test_files():
    """The manifest, the profile, the summary and the source name the same provider and events."""
    header = (ROOT / "src/prim/windows_etw.h").read_text(encoding="utf-8")
    source = (ROOT / "src/prim/windows_etw.c").read_text(encoding="utf-8")
    parts = re.search(r"prim_etw_provider = \{0x(\w+), 0x(\w+), 0x(\w+), \{(.*?)\}\}", source)
    tail = "".join(re.findall(r"0x(\w\w)", parts[4]))
    check(f"{{{parts[1]}-{parts[2]}-{parts[3]}-{tail[:4]}-{tail[4:]}}}".upper() == GUID and GUID in header, parts.groups())
    numbers = {name: int(n) for name, n in re.findall(r"#define MI_ETW_(\w+) +(\d+)", header)}
    manifest = ElementTree.parse(ROOT / "tools/etw/mimalloc-etw.man")
    space = {"e": "http://schemas.microsoft.com/win/2004/08/events"}
    check(manifest.find(".//e:provider", space).get("guid") == GUID, "the manifest's provider")
    found = {e.get("symbol"): int(e.get("value")) for e in manifest.findall(".//e:event", space)}
    check(found == {"ETW_MI_ALLOC": numbers["ID_ALLOC"], "ETW_MI_FREE": numbers["ID_FREE"]}, found, numbers)
    fields = [(d.get("name"), d.get("inType")) for d in manifest.findall(".//e:template/e:data", space)]
    check(fields == [("Address", "win:UInt64"), ("Size", "win:UInt64")], fields)
    check(int(manifest.find(".//e:keyword", space).get("mask"), 16) == numbers["KEYWORD_BLOCK"], "the keyword")
    profile = ElementTree.parse(ROOT / "tools/etw/mimalloc.wprp")
    provider = profile.find(".//EventProvider")
    check("{" + provider.get("Name") + "}" == GUID and int(provider.get("Level")) == numbers["LEVEL"], provider.attrib)
    check(provider.get("Stack") == "true" and int(provider.find(".//Keyword").get("Value"), 16) == numbers["KEYWORD_BLOCK"], "profile")
    names = {e.get("Id") for e in profile.iter() if e.get("Id")}  # what is referred to is there
    referred = {e.get("Value") for e in profile.iter() if e.tag.endswith("Id")} | {e.get("Base") for e in profile.iter() if e.get("Base")}
    check(referred <= names, referred - names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="etw-") as where:
        bench = Bench(where)
        test_forms(bench, args.seed)
        test_small(bench)
        test_errors(bench)
    test_files()
    print(f"run.py: seed {args.seed}, {n_checks} checks")
    return 0


if __name__ == "__main__":
    sys.exit(main())

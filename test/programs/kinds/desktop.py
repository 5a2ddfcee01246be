"""Browsers, office programs and other programs with windows, without a screen."""

import hashlib
import os
import re

from outcome import Failed, Skipped
from registry import ROOT, program

HTML = """<!doctype html><meta charset=utf-8><title>page</title><h1>Printed by a browser</h1><div id=o></div><canvas id=c></canvas>
<script>
  const rows = []; for (let i = 0; i < 2000; i++) rows.push({ i, s: 'text'.repeat(i % 9), q: i * i });
  document.getElementById('o').innerHTML = '<table>' + rows.filter(r => r.i % 20 === 0).map(r => `<tr><td>${r.i}<td>${r.s}<td>${r.q}`).join('') + '</table>';
  const x = document.getElementById('c').getContext('2d'); for (let i = 0; i < 500; i++) x.fillRect(i % 50 * 6, i, 4, 4);
</script>"""


def pdf_without_dates(data):
    return re.sub(rb"/(CreationDate|ModDate|ID|Producer|Creator)\s*(\([^)]*\)|\[[^\]]*\])", b"", data)


def print_with_chromium(session, name, sandbox, user=None, home=None):
    page = session.work / "page.html"
    page.write_text(HTML, encoding="utf-8")

    def argv(where):
        return ["chromium", "--headless", *sandbox, "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                f"--user-data-dir={where}/profile", f"--print-to-pdf={where}/out.pdf", "--no-pdf-header-footer", f"file://{page}"]

    def options(where):
        where.chmod(0o777)
        return {"cwd": where, "timeout": 240, "user": user, "env": {"HOME": str(where), "TMPDIR": str(where)}}

    def once(preload):
        where = session.fresh(name)
        session.must(argv(where), preload, **options(where))
        return pdf_without_dates((where / "out.pdf").read_bytes())

    plain, preloaded = session.pair(once)
    if plain[:5] != b"%PDF-" or plain.count(b"/Type /Page\n") != preloaded.count(b"/Type /Page\n") or \
            abs(len(plain) - len(preloaded)) > 200:
        raise Failed(f"the documents differ: {len(plain)} and {len(preloaded)} bytes")
    session.note(f"a PDF of {len(preloaded)} bytes")
    where = session.fresh("served")
    session.own_allocator("/usr/lib/chromium/chromium", argv(where), "PartitionAlloc", **options(where))


@program("chromium", "binutils:nm")
def chromium(session):
    """Chromium, headless, printing a page to PDF; its executable has a malloc of its own, which must not be mixed with ours"""
    print_with_chromium(session, "printed", ["--no-sandbox"])


@program("chromium", "binutils:nm")
def chromium_sandbox(session):
    """Chromium with its sandbox, as a user without root: namespaces and seccomp"""
    user = 65534 if os.getuid() == 0 else None
    if session.run(["unshare", "--user", "--map-root-user", "true"], False, user=user, is_counted=False).status != 0:
        raise Skipped("this user may not make namespaces")
    print_with_chromium(session, "printed", [], user)


@program("firefox-esr", "binutils:nm")
def firefox(session):
    """Firefox, headless, taking a picture of a page; its executable has a malloc of its own, to which all its libraries lead"""
    page = session.work / "page.html"
    page.write_text(HTML, encoding="utf-8")

    def argv(where):
        return ["firefox-esr", "--headless", "--no-remote", "--profile", where / "profile", "--window-size=800,600",
                "--screenshot", where / "out.png", f"file://{page}"]

    def prepared(name):
        where = session.fresh(name)
        (where / "profile").mkdir()
        return where

    def once(preload):
        where = prepared("picture")
        session.must(argv(where), preload, cwd=where, timeout=240)
        return hashlib.sha256((where / "out.png").read_bytes()).hexdigest()

    session.same(once)
    where = prepared("served")
    session.own_allocator("/usr/lib/firefox-esr/firefox-esr", argv(where), "mozjemalloc", cwd=where, timeout=240)


# ---- office ----------------------------------------------------------------------------------------------------------------

def write_table(path):
    path.write_text("n,square,text\n" + "".join(f"{i},{i * i},text {i * 7919 % 1009}\n" for i in range(1500)), encoding="utf-8")
    return path


@program("libreoffice-calc-nogui:soffice", "libreoffice-writer-nogui:soffice")
def libreoffice(session):
    """LibreOffice: a table and a page of HTML to several formats"""
    table = write_table(session.work / "table.csv")
    (session.work / "page.html").write_text("<h1>Title</h1>" + "".join(f"<p>Paragraph <b>{i}</b> of the text.</p><table><tr><td>{i}</td></tr></table>"
                                                                       for i in range(40)), encoding="utf-8")

    def convert(where, to, source):
        return ["soffice", f"-env:UserInstallation=file://{where}/profile", "--headless", "--norestore", "--convert-to", to, "--outdir", where, source]

    def once(preload):
        where = session.fresh("converted")
        session.must(convert(where, "fods", table), preload, cwd=where)
        session.must(convert(where, "csv:Text - txt - csv (StarCalc):59,34,76", where / "table.fods"), preload, cwd=where)
        session.must(convert(where, "txt:Text", session.work / "page.html"), preload, cwd=where)
        session.must(convert(where, "pdf", session.work / "page.html"), preload, cwd=where)
        return "".join((where / name).read_text(encoding="utf-8", errors="replace") for name in ("table.csv", "page.txt")) + \
            f"{len((where / 'page.pdf').read_bytes()) // 2000}"

    session.same(once)
    where = session.fresh("served")
    session.served(convert(where, "fods", table), cwd=where, least_pages=500)


@program("gnumeric:ssconvert")
def gnumeric(session):
    """Gnumeric's converter: a table to its own format and to Excel's, and back"""
    table = write_table(session.work / "table.csv")
    script = f"ssconvert {table} out.gnumeric && ssconvert out.gnumeric out.xls && ssconvert out.xls out.csv && sha256sum out.csv"
    session.both(["sh", "-c", script], stderr=False)
    session.served(["ssconvert", table, "out.gnumeric"], least_pages=100)


# ---- pictures ----------------------------------------------------------------------------------------------------------------

def picture_programs(session):
    """A picture, and the options of imagemagick that show its pixels."""
    picture = session.work / "in.png"
    session.client(["convert", "-size", "300x200", "gradient:red-blue", "-swirl", "90", "-strip", picture])
    return picture


def pixels(session, path):
    return hashlib.sha256(session.client(["convert", path, "-depth", "8", "txt:-"]).out.encode()).hexdigest()


@program("inkscape", "imagemagick:convert")
def inkscape(session):
    """Inkscape: this project's chart to PNG and PDF, with actions"""
    chart = ROOT / "docs/benchmarks/overall.svg"

    def argv(where):
        return ["inkscape", f"--export-filename={where}/out.png", "--export-width=700",
                "--actions=select-all;transform-rotate:3;object-to-path;export-do", chart]

    def once(preload):
        where = session.fresh("drawn")
        session.must(argv(where), preload, cwd=where)
        return pixels(session, where / "out.png")

    session.same(once)
    where = session.fresh("served")
    session.served(argv(where), cwd=where, least_pages=300)


GIMP_SCRIPT = """(let* ((image (car (gimp-file-load RUN-NONINTERACTIVE "{source}" "in"))) (layer (car (gimp-image-get-active-layer image))))
 (plug-in-gauss RUN-NONINTERACTIVE image layer 5 5 0) (gimp-image-scale image 450 300) (plug-in-edge RUN-NONINTERACTIVE image layer 2 1 0)
 (gimp-drawable-invert layer FALSE) (file-png-save RUN-NONINTERACTIVE image layer "{out}" "out" 0 9 0 0 0 0 0))"""


@program("gimp:gimp-console", "imagemagick:convert")
def gimp(session):
    """GIMP: a script of filters without a screen; each plug-in is a process"""
    source = picture_programs(session)

    def argv(where):
        script = GIMP_SCRIPT.format(source=source, out=where / "out.png").replace("\n", " ")
        return ["gimp-console", "-i", "-n", "-d", "-f", "-s", "-b", script, "-b", "(gimp-quit 0)"]

    def once(preload):
        where = session.fresh("drawn")
        session.must(argv(where), preload, cwd=where)
        return pixels(session, where / "out.png")

    session.same(once)
    where = session.fresh("served")
    session.served(argv(where), cwd=where, least_pages=300, least_processes=2)


@program("evince:evince-thumbnailer", "ghostscript:gs", "imagemagick:convert")
def evince(session):
    """Evince's thumbnailer: a page of a PDF"""
    (session.work / "in.ps").write_text("%!PS\n/Helvetica findfont 30 scalefont setfont\n" + "".join(
        f"50 {700 - i * 30} moveto (line {i} of the page) show\n" for i in range(20)) + "showpage\n", encoding="utf-8")
    source = session.work / "in.pdf"
    session.client(["gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pdfwrite", "-o", source, session.work / "in.ps"])

    def argv(where):
        return ["evince-thumbnailer", "-s", "300", source, where / "out.png"]

    def once(preload):
        where = session.fresh("drawn")
        session.must(argv(where), preload, cwd=where)
        return pixels(session, where / "out.png")

    session.same(once)
    where = session.fresh("served")
    session.served(argv(where), cwd=where, least_pages=30)

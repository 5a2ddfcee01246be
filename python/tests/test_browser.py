"""The flame graph in a browser: what it shows, and what clicks, keys and searches change, in a wide and in a narrow window."""

import html
import json
import re
import shutil
import subprocess

import pytest
from pprof_writer import Writer

from mimalloc import pprof, reports

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
HOSTILE = "<!--<script>"    # a comment in which the end of the script would not be seen
ACTIONS = """
const boxes = () => [...page.querySelectorAll(".f")];
const box = name => boxes().find(each => each.title.split("\\n")[0] === name);
const find = page.getElementById("find"), info = () => page.getElementById("info").textContent;
const search = text => { find.value = text; find.dispatchEvent(new view.Event("input")); return info(); };
const own = each => Math.round(each.getBoundingClientRect().width);
const graph = page.getElementById("graph");
said.title = page.title;
said.first = boxes().map(each => each.title.split("\\n")[0]);
said.fits = page.documentElement.scrollWidth <= view.innerWidth;
said.help = info();
const before = own(box("load"));
box("load").click();
said.grew = own(box("load")) > before && own(box("load")) >= graph.clientWidth - 1;
said.above = boxes().filter(each => each.classList.contains("above")).map(each => each.textContent);
said.enlarged = [info(), page.activeElement.title.split("\\n")[0]];
box("main").dispatchEvent(new view.KeyboardEvent("keydown", { key: "Enter" }));
said.key = boxes().filter(each => each.classList.contains("above")).map(each => each.textContent);
said.found = search("^PARSE$");
said.hits = boxes().filter(each => each.classList.contains("hit")).map(each => each.textContent);
said.wrong = search("(");
said.emptied = search("");
search("parse");
page.getElementById("reset").click();
said.reset = [boxes().length, find.value, info()];
"""


def in_browser(browser, text, width, directory):
    """What ACTIONS has found in a page of that width, and the errors of its scripts."""
    outer = f"""<!doctype html><meta charset="utf-8"><iframe id="f" width="{width}" height="600" srcdoc="{html.escape(text)}"></iframe><pre id="said"></pre>
<script>
const frame = document.getElementById("f"), said = {{ errors: [] }};
frame.onload = () => {{
  const page = frame.contentDocument, view = frame.contentWindow;
  view.onerror = text => said.errors.push(text);
  try {{ {ACTIONS} }} catch (error) {{ said.errors.push(String(error)); }}
  document.getElementById("said").textContent = "said " + JSON.stringify(said) + " end";
}};
</script>"""
    (directory / "outer.html").write_text(outer)
    run = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={directory}/profile", "--virtual-time-budget=5000",
                          "--dump-dom", f"file://{directory}/outer.html"], capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'<pre id="said">said (.*?) end</pre>', run.stdout, re.S)
    if run.returncode != 0 and not found:
        pytest.skip(f"{browser} does not run here: {run.stderr.strip().splitlines()[-1:]}")
    assert found, run.stdout[-2000:]
    return json.loads(html.unescape(found[1]))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    w = Writer()
    w.named(["main", "load", "parse"], [1, 100, 1, 600])
    w.named(["main", "load", HOSTILE], [1, 100, 1, 200])
    w.named(["main", "serve"], [1, 100, 1, 1200])
    path = tmp_path_factory.mktemp("browser") / "@DATA@.pb"
    path.write_bytes(w.data(False))
    profile = pprof.read(path)
    return reports.flame_page(profile, profile.index())


@pytest.mark.parametrize("width", [1280, 375])
def test_flame_graph(page, width, tmp_path):
    browser = next((name for name in BROWSERS if shutil.which(name)), None)
    if browser is None:
        pytest.skip("there is no browser: chromium")
    said = in_browser(browser, page, width, tmp_path)
    assert said["errors"] == []
    assert said["title"] == "inuse_space: 2.0 KiB in @DATA@.pb" and said["fits"]
    assert sorted(said["first"]) == sorted(["all", "main", "load", "parse", HOSTILE, "serve"])
    assert said["grew"] and said["above"] == ["all", "main"] and said["enlarged"] == ["load: 800 B (40.0 %)", "load"]
    assert said["key"] == ["all"]
    assert said["found"] == "found: 600 B (30.0 %)" and said["hits"] == ["parse"]
    assert said["wrong"] == "This is no regular expression." and said["emptied"] == said["help"] == "Click on a function to enlarge it."
    assert said["reset"] == [6, "", said["help"]]


def test_page_is_for_narrow_screens(page):
    """Telephones otherwise lay it out for a window of 980 pixels."""
    assert '<meta name="viewport" content="width=device-width' in page


def test_names_in_a_profile_do_not_fill_in_the_page(page):
    assert page.count("@DATA@") == 2 and page.count('"n":"main"') == 1      # the name of the file, in two titles
    assert HOSTILE not in page


def test_unit_does_not_end_the_script(page, tmp_path):
    (tmp_path / "a.pb").write_bytes(Writer(types=[("t", '";</script><b>')]).data(False))
    profile = pprof.read(tmp_path / "a.pb")
    assert reports.flame_page(profile, 0).count("</script>") == page.count("</script>")

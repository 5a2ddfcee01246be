#!/usr/bin/env python3
"""Opens the built site in Chromium: no page may scroll sideways on a phone or a desktop, text must not be tiny, and the search must find
functions, all from files, without a server or a network.

    browser.py SITE [--shots DIR [--dark]]     DIR gets pictures of the main pages

Exit status: 0 all is well, 1 something is wrong, 77 there is no browser."""

import argparse
import os
import pathlib
import shutil
import sys
import tempfile

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    # Debian's packages belong to Debian's interpreter.
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("skipped: selenium is not installed")
    sys.exit(77)

MAIN = ["index.html", "README.html", "docs/guide/migration.html", "docs/guide/tuning.html", "docs/platforms.html", "docs/design/heap.html",
        "docs/design/structure.html", "docs/design/calls.html", "docs/benchmarks/README.html", "reference/mimalloc.html",
        "examples/README.html", "source/examples/event-loop/loop.c.html"]
WIDTHS = {"phone": 375, "desktop": 1280}
SEARCHES = {"mi_heap_destroy": "reference/mimalloc.html", "tcmalloc": "docs/guide/migration.html", "guarded": "docs/design/guarded.html"}

# What sticks out of the page, if anything does.
SIDEWAYS = """
const width = document.documentElement.clientWidth, found = [];
if (document.documentElement.scrollWidth > width + 1) {
  for (const e of document.querySelectorAll("article *")) {
    const r = e.getBoundingClientRect();
    if (r.right > width + 1 && !e.closest(".table-wrapper, figure.diagram, .highlight, pre")) found.push(e.tagName + "." + e.className);
  }
  return "page of " + document.documentElement.scrollWidth + " px: " + found.slice(0, 3).join(" ");
}
return "";
"""
# The smallest text of the page itself, in pixels.
SMALLEST = """
let smallest = 99, where = "";
for (const e of document.querySelectorAll("article p, article li, article td, article pre, article dt, article code")) {
  if (e.closest(".headerlink, figure, sup, .linenos")) continue;
  const size = parseFloat(getComputedStyle(e).fontSize);
  if (e.textContent.trim() && size < smallest) { smallest = size; where = e.tagName + ": " + e.textContent.slice(0, 30); }
}
return [smallest, where];
"""


def driver(width, dark, profile):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     f"--user-data-dir={profile}", "--window-size=1280,900", "--no-proxy-server",
                     "--host-resolver-rules=MAP * ~NOTFOUND"):  # nothing may be loaded from elsewhere
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "SEVERE"})
    browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    browser.set_page_load_timeout(60)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": 812 if width < 600 else 900, "deviceScaleFactor": 1, "mobile": width < 600})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                            {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    return browser


def check_page(browser, page, name):
    wrong = []
    if sideways := browser.execute_script(SIDEWAYS):
        wrong.append(f"{name}: {page} scrolls sideways, {sideways}")
    smallest, where = browser.execute_script(SMALLEST)
    if smallest < 11:
        wrong.append(f"{name}: {page} has text of {smallest} px, {where}")
    # The text of search results is loaded by a request, which browsers forbid for files; the results are there without.
    for entry in browser.get_log("browser"):
        if "search.html" not in page:
            wrong.append(f"{name}: {page}: {entry['message'][:200]}")
    return wrong


def check_search(browser, site, word, expected):
    browser.get(f"file://{site}/search.html?q={word}")
    WebDriverWait(browser, 30).until(lambda b: b.find_elements(By.CSS_SELECTOR, "#search-results li a"))
    found = [a.get_attribute("href").split("/site", 1)[-1] for a in browser.find_elements(By.CSS_SELECTOR, "#search-results li a")]
    browser.get_log("browser")
    return [] if any(expected in link for link in found) else [f"searching {word} does not find {expected}, but {found[:3]}"]


def pages_of(site):
    return sorted(p.relative_to(site).as_posix() for p in site.rglob("*.html") if not p.name.startswith(("genindex", "search")))


def shoot(browser, path):
    height = browser.execute_script("return Math.min(document.documentElement.scrollHeight, 3000)")
    width = browser.execute_script("return document.documentElement.clientWidth")
    picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True,
                                                                "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}})
    import base64
    path.write_bytes(base64.b64decode(picture["data"]))


def visit(site, name, width, args, profile):
    wrong, browser = [], driver(width, args.dark, profile)
    pages = MAIN if args.shots else pages_of(site)
    try:
        for page in pages:
            browser.get(f"file://{site}/{page}")
            wrong += check_page(browser, page, name)
            if args.shots:
                shoot(browser, args.shots / f"{name}-{page.replace('/', '-').removesuffix('.html')}{'-dark' if args.dark else ''}.png")
        for word, expected in SEARCHES.items():
            wrong += check_search(browser, site, word, expected)
    finally:
        browser.quit()
    print(f"{name}, {width} px: {len(pages)} pages, {len(SEARCHES)} searches, {len(wrong)} wrong", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=pathlib.Path)
    parser.add_argument("--shots", type=pathlib.Path)
    parser.add_argument("--dark", action="store_true")
    args = parser.parse_args()
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("skipped: chromium and chromium-driver are not installed")
        return 77
    if args.shots:
        args.shots.mkdir(parents=True, exist_ok=True)
    wrong = []
    for name, width in WIDTHS.items():
        with tempfile.TemporaryDirectory(prefix="mimalloc-site-", ignore_cleanup_errors=True) as profile:
            wrong += visit(args.site.resolve(), name, width, args, profile)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

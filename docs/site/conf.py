# The configuration of Sphinx for the documentation site.  build.py makes the sources that it reads, and sets MI_SITE_VERSION.
import os

project = "mimalloc"
author = copyright = "the authors of this independent implementation; MIT license"  # noqa: A001
version = release = os.environ.get("MI_SITE_VERSION", "")

extensions = ["myst_parser"]
myst_heading_anchors = 6  # links of docs/*.md lead to headings by the names that GitHub gives them
myst_enable_extensions = ["deflist"]
suppress_warnings = ["misc.highlighting_failure", "myst.header"]  # fragments of other languages; pages that begin at level 2
exclude_patterns = ["_build"]
primary_domain = "c"
highlight_language = "c"
nitpicky = False

html_theme = "furo"
html_title = f"mimalloc {version}"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b5cad", "color-brand-content": "#0b5cad",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif",
        "font-stack--monospace": "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
    },
    "dark_css_variables": {"color-brand-primary": "#6db3f2", "color-brand-content": "#6db3f2"},
}

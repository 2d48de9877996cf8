"""The documentation's site: `make site` builds it into build/site.

The pages are those of the repository, at the paths that they have there, so that links
between them work on both. What only the site has is in this folder.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT / "python")]

import navigation
from mlir_lexer import MLIRLexer

project = "Varlen"
version = release = re.search(r"project\(varlen VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
copyright = "the Varlen authors, Apache License 2.0 with LLVM exceptions"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
include_patterns = ["README.md", "CHANGELOG.md", "benchmarks/README.md", "docs/**.md", "site/*.md"]
exclude_patterns = ["build*", ".*", "executor", "include", "lib", "python", "test", "tools"]
root_doc = "docs/index"

# Links to a heading of a page are those that GitHub makes.
myst_heading_anchors = 4
# TableGen's pages skip levels of headings.
suppress_warnings = ["myst.header"]

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
maximum_signature_line_length = 80
napoleon_numpy_docstring = False
# Neither jax nor a build is needed to read what varlen.jax says of itself.
autodoc_mock_imports = [
    "jax", "varlen.jax._derivatives", "varlen.jax._ffi", "varlen.jax._operation",
]  # fmt: skip

html_theme = "furo"
html_title = f"Varlen {version}"
html_static_path = ["_static"]
html_css_files = ["varlen.css"]
html_copy_source = False
html_show_sphinx = False
html_additional_pages = {"index": "redirect.html"}
templates_path = ["_templates"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#7fb2ea", "color-brand-content": "#7fb2ea"},
}
pygments_style = "default"
pygments_dark_style = "github-dark"


def escape(app, what, name, object, options, lines):
    """Docstrings are text: |a - b| is no substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def keep_from_search(app, doctree):
    """Logs of experiments are found by what links to them, not by words."""
    if app.env.docname.startswith("docs/notes/"):
        app.env.metadata[app.env.docname]["no-search"] = ""


def setup(app):
    app.connect("doctree-read", keep_from_search)
    app.add_lexer("mlir", MLIRLexer)
    app.connect("source-read", navigation.complete)
    app.connect("autodoc-process-docstring", escape)

"""The documentation site: `make doc` builds it into doc/_build/html, every warning an error, no network needed."""

import re
import sys
from datetime import date
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

import paretomkl
from paretomkl._tools.public import internal_names
from paretomkl.datasets import data_found

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside this file
from stored_examples import NEEDED

project = "paretomkl"
author = "The paretomkl developers"
copyright = f"{date.today().year}, {author}"
version = release = paretomkl.__version__

extensions = [
    "mathml",
    "stored_examples",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"~?sklearn\..*"),  # links to scikit-learn's pages would need the network
    ("py:.*", "Solver"),  # not public
]
smartquotes = False  # they would curl the prime of α'y and the quotes of messages
highlight_language = "none"  # indented blocks are messages and outlines

# Formulas of the pages are LaTeX and become MathML; in docstrings, which are read in terminals too, they are Unicode.
html_math_renderer = "mathml"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# -- reference
autosummary_generate = True
autodoc_typehints = "none"  # docstrings say shapes and defaults, which hints cannot
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the templates list methods

# -- examples
EXAMPLES = (
    *("quick_start", "tasks", "sources", "mfeat", "capacity", "trade_off", "choose_p", "strings"),
    *("sharing", "landmine", "regression", "outliers"),
)
# run only where the data set is at hand, since a build needs no network; otherwise their stored output is shown
shown_only = [name for name, data in NEEDED.items() if not data_found()[data]]
sphinx_gallery_conf = {
    "filename_pattern": rf"plot_(?!{'|'.join(shown_only)})" if shown_only else "plot_",
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": ExplicitOrder([f"plot_{name}.py" for name in EXAMPLES] + ["*"]),
    "doc_module": ("paretomkl",),
    "reference_url": {"paretomkl": None},
    "reset_modules": ("matplotlib", "stored_examples.use_site_style"),
    "backreferences_dir": "api/generated/backreferences",
    "image_srcset": ["2x"],
    "thumbnail_size": (560, 240),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}

# -- pages
html_theme = "pydata_sphinx_theme"
html_title = "paretomkl"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "paretomkl", "alt_text": "paretomkl"},
    "header_links_before_dropdown": 5,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {page: [] for page in ("index", "search", "genindex")}  # no section has these


def skip_routing(app, what, name, obj, skip, options):
    """Leave out set_fit_request and its like, whose text refers to scikit-learn's pages, and internal members."""
    routing = re.fullmatch(r"set_\w+_request|get_metadata_routing", name)
    return True if routing or name in internal_names() else None


def setup(app):
    app.connect("autodoc-skip-member", skip_routing)

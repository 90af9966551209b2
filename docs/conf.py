"""How Sphinx builds the site; `make docs` runs it with warnings as errors and without a network."""

import sys
from pathlib import Path

import matplotlib as mpl

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import ordspan

project = "ordspan"
author = "The ordspan developers"
copyright = "The ordspan developers, BSD-3-Clause"
version = release = ordspan.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "myst_parser",
    "mathml",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "measured/reproduced-*.md"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False
html_math_renderer = "mathml"
highlight_language = "text"  # blocks without a language are of the shell
highlight_options = {"python": {"stripnl": True}}  # doctests end with an empty line, pages need not

copybutton_prompt_text = r">>> |\.\.\. "  # copied without prompts and without answers
copybutton_prompt_is_regexp = True

default_role = "py:obj"  # a name in single backticks
toc_object_entries_show_parents = "hide"
autosummary_generate = True
autodoc_typehints = "none"  # the types stand in the docstrings, in words
numpydoc_show_class_members = False  # the template of a class lists them
# methods that a learner overrides have the words of `Learner`
numpydoc_validation_exclude = {
    r"(Kernel|Linear|MulticlassPA|Perceptron)Learner\.(adopt_|is_compat|why_|with_|latent$|predict_many)"
}
numpydoc_validation_checks = {"GL08", "SS01", "PR01", "PR02", "PR03", "PR07", "RT03", "YD01"}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "gallery_order.reading_order",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("ordspan",),
    "reference_url": {"ordspan": None},
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "matplotlib_animations": False,
}
mpl.use("agg")

html_theme = "pydata_sphinx_theme"
html_title = "ordspan"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "../src/ordspan/serving/annotate/pages/icon.svg"
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
smartquotes_action = "De"  # dashes and dots: quotes around a default are code
html_theme_options = {
    "logo": {"text": "ordspan"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "api": [], "changelog": []}

"""How Sphinx makes the documentation: `make docs`."""

import ellzero

project = "ellzero"
copyright = "the ellzero authors"
version = release = ellzero.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
]
html_theme = "furo"
html_title = "ellzero"
exclude_patterns = ["_build"]
myst_heading_anchors = 4
copybutton_prompt_text = ">>> |\\.\\.\\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

autodoc_typehints = "none"  # signatures stay readable; docstrings say what is what
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    # scikit-learn's own, whose texts refer to its own pages
    "exclude-members": "set_fit_request, set_score_request, set_transform_request, "
    "set_inverse_transform_request",
}
napoleon_google_docstring = False
default_role = "code"
suppress_warnings = ["ref.python"]  # words in descriptions of types that name several attributes


def setup(app):
    """Bars in docstrings mean magnitudes, not substitutions."""

    def escape_bars(app, what, name, obj, options, lines):
        lines[:] = [line if ">>>" in line else line.replace("|", r"\|") for line in lines]

    app.connect("autodoc-process-docstring", escape_bars)

"""The configuration of Sphinx for the site; see `tools.site.build`."""

from typing import Any

from tools.site.docstrings import mark_blocks
from venire import __version__

project = "venire"
author = "the venire authors"
version = release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
html_theme = "furo"
html_title = f"venire {__version__}"
html_extra_path = ["extra"]
html_show_sphinx = False
html_copy_source = False
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say it shorter than `ArrayLike` in full
default_role = "code"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
suppress_warnings = ["myst.header"]


def setup(app: Any) -> None:
    """Called by Sphinx: docstrings are read before napoleon reads them."""
    app.connect("autodoc-process-docstring", mark_blocks, priority=100)

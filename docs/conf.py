"""Sphinx configuration. ``make docs`` builds the pages without network access and warnings.

With ``make docs INTERSPHINX=1`` names of other packages are links to their documentation, whose
inventories are downloaded.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

from manykernels import __version__  # noqa: E402 (needs the path set above)

project = "manykernels"
author = "The manykernels developers"
project_copyright = author
version = release = __version__
language = "en"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "linked_names",
    "mathml",
]
if os.environ.get("INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "matplotlib": ("https://matplotlib.org/stable", None),
    }
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
root_doc = "index"

# -- pages -----------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
highlight_language = "none"  # Python blocks are marked as such
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# -- reference -------------------------------------------------------------------------------

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"  # docstrings describe the types of parameters
autodoc_member_order = "groupwise"
# The templates list the members.
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# -- gallery ---------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",  # all of them: each has a picture
    "backreferences_dir": "auto_examples/backreferences",
    "doc_module": ("manykernels",),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "subsection_order": [
        f"../examples/{section}"
        for section in ("start", "data", "judging", "machines", "regions", "scale", "solvers")
    ],
    "within_subsection_order": "gallery_order.PicturesFirst",
    "write_computation_times": False,  # its page loads scripts from other servers
}

# -- theme -----------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = f"manykernels {version}"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_extra_path = ["llms.txt"]
html_css_files = ["house.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "logo": {"text": project, "alt_text": ""},
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
    "secondary_sidebar_items": ["page-toc"],
}

"""Sphinx configuration; ``make docs`` stages the pages first (tools/docs.py)."""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number

import attnlab
from attnlab.report import mathml

project = "attnlab"
author = "The attnlab developers"
copyright = author
version = release = attnlab.__version__
extensions = ["sphinx.ext.autodoc", "myst_nb"]
html_theme = "furo"
html_title = "attnlab"
html_static_path = ["_static"]
html_css_files = ["attnlab.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
default_role = "code"
exclude_patterns: list[str] = []

toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
maximum_signature_line_length = 90
python_use_unqualified_type_names = True

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_dmath_double_inline = True
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).resolve().parent.parent / "docs-notebooks")
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True


def formula(self: Any, node: nodes.Element) -> None:
    """LaTeX as MathML: no script, no font, no network."""
    display = isinstance(node, nodes.math_block)
    number = get_node_equation_number(self, node) if display and node.get("number") else ""
    mark = f'<span class="eqno">({number})</span>' if number else ""
    # A norm's bars belong to what stands between them; a browser takes them for an operator.
    bar = '<mo stretchy="false"{}>|</mo>'
    tight = bar.format(' lspace="0" rspace="0"')
    typeset = str(mathml(node.astext(), display=display)).replace(bar.format(""), tight)
    self.body.append(f'<div class="math">{mark}{typeset}</div>' if display else typeset)
    raise nodes.SkipNode


_LITERAL = re.compile(r"(``.*?``|`[^`]*`_?)", re.DOTALL)


def readable(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are written for ``help``: norms are no substitutions, sections become links."""
    pieces = _LITERAL.split("\n".join(lines))
    for k in range(0, len(pieces), 2):  # the others are literals, which need space around them
        before = "\\ " if k and re.match(r"[^\s.,:;!?)\]}’”/-]", pieces[k]) else ""
        after = "\\ " if k + 1 < len(pieces) and re.search(r"[^\s(\[{“/-]$", pieces[k]) else ""
        text = before + pieces[k].replace("|", "\\|") + after
        text = re.sub(r"docs/theory\.md#([\w-]+)", r":ref:`theory, \1 <\1>`", text)
        pieces[k] = re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", text)
    lines[:] = "".join(pieces).split("\n")


def signed(
    app: Sphinx,
    what: str,
    name: str,
    value: Any,
    options: Any,
    given: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """A default that has no notation, such as a factory, is left open: Sphinx could not read it."""
    return re.sub(r"<[^<>]*>", "...", given) if given else given, returns


def skipped(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Methods that scikit-learn adds to route metadata are not ours to explain."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def setup(app: Sphinx) -> None:
    """Register the renderer of formulas and the reader of docstrings."""
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("autodoc-process-docstring", readable)
    app.connect("autodoc-process-signature", signed)
    app.connect("autodoc-skip-member", skipped)

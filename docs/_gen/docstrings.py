"""Docstrings as Markdown: roles become links, formulas and examples become blocks of code.

The docstrings are read in an editor and by ``help()`` first, so they keep to what looks right there: ``:func:`name```
for a reference, ``.. math::`` for a formula and ``>>>`` for an example.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from griffe import Extension, Object

ROLE = re.compile(r":(?:func|class|meth|mod|attr|data|exc):`(~?)([^`]+)`")
MATH = re.compile(r"^( *)\.\. math:: *(.*(?:\n(?:\1 +\S.*))*)", re.MULTILINE)
EXAMPLE = re.compile(r"(?:^ *(?:>>>|\.\.\.) .*\n?)+", re.MULTILINE)
LATEX = (
    (re.compile(r"\\(?:text|mathrm|mathbf|operatorname)\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\(?:quad|qquad|,|;|!) ?"), " "),
    (re.compile(r"\\(?:Big|big|bar|left|right) ?"), ""),
    (re.compile(r"\^?\\top\b"), "ᵀ"),
    (re.compile(r"\\sum\b"), "Σ"),
    (re.compile(r"\\(\w+)"), r"\1"),
)


class Docstrings(Extension):
    """Rewrites every docstring once it is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value, obj)


def to_markdown(text: str, obj: Object) -> str:
    text = MATH.sub(_formula, text)
    text = EXAMPLE.sub(_example, text)
    return ROLE.sub(lambda match: _reference(match, obj), text)


def _reference(match: re.Match[str], obj: Object) -> str:
    """A link where the target is on the site, and its name in any case."""
    short, target = match.groups()
    shown = target.rsplit(".", 1)[-1] if short else target
    if "." not in target or not target.startswith("gcond"):  # a neighbour: of the class, or of the module
        try:
            target = obj.resolve(target)
        except Exception:  # griffe has several errors for a name that it does not know
            target = f"{obj.path}.{target}"
    return f'<autoref optional identifier="{escape(target)}"><code>{escape(shown)}</code></autoref>'


def _formula(match: re.Match[str]) -> str:
    lines = " ".join(match[2].split())
    for pattern, plain in LATEX:
        lines = pattern.sub(plain, lines)
    return f"```text\n{' '.join(lines.split())}\n```"


def _example(match: re.Match[str]) -> str:
    lines = [line.strip() for line in match[0].strip().splitlines()]
    return "```python\n" + "\n".join(line[4:] for line in lines) + "\n```\n"

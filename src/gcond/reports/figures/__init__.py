"""Figures of condensed graphs and of what was measured on them, as PNG or SVG.

Every function makes a :class:`matplotlib.figure.Figure` of its own and touches no state of ``pyplot``. The same data
gives the same bytes: nothing in a picture depends on the day, on a user's matplotlib settings or on chance.
"""

from __future__ import annotations

import hashlib
import io
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

from gcond.errors import GcondError
from gcond.reports.figures.style import DPI, applied
from gcond.runtime.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "save_figure", "svg_text"]

FORMATS = ("png", "svg")
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write ``figure`` to ``path``, atomically, in the format of its suffix: ``.png`` or ``.svg``."""
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise GcondError(f"'{path}' does not say its format: give a name that ends in .png or .svg")
    content = png_bytes(figure) if kind == "png" else f'<?xml version="1.0" encoding="utf-8"?>\n{svg_text(figure)}\n'
    with atomic_path(path) as temporary:
        temporary.write_bytes(content if isinstance(content, bytes) else content.encode())


def png_bytes(figure: Figure) -> bytes:
    """``figure`` as a PNG."""
    stream = io.BytesIO()
    with applied():
        figure.savefig(stream, format="png", dpi=DPI, metadata={"Software": None, "Title": figure.get_label()})
    return stream.getvalue()


def svg_text(figure: Figure) -> str:
    """``figure`` as an ``<svg>`` element that can stand in a page beside others.

    Its ids start with a hash of what it shows, its style rules reach nothing outside of it, and it has a title for
    screen readers. It has no XML prolog; its width is what the page gives it, up to its own.
    """
    stream = io.StringIO()
    with applied(**{"svg.hashsalt": "gcond"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    salt = f"g{hashlib.sha256(text.encode()).hexdigest()[:10]}"
    root = ET.fromstring(text)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{_SVG}}}metadata":
                parent.remove(child)
    for element in root.iter():
        _own_names(element, salt)
        if element.tag == f"{{{_SVG}}}style":
            element.text = f"#{salt} {(element.text or '').strip()}"  # as it was, it would hold for the whole page
    title = ET.Element(f"{{{_SVG}}}title", {"id": f"{salt}-title"})
    title.text = str(figure.get_label())
    root.insert(0, title)
    root.attrib |= {"id": salt, "role": "img", "aria-labelledby": f"{salt}-title"}
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    return ET.tostring(root, encoding="unicode")


def _own_names(element: ET.Element, salt: str) -> None:
    """Put ``salt`` before the id of ``element`` and before those it refers to."""
    for key, value in element.attrib.items():
        if key == "id":
            element.set(key, f"{salt}-{value}")
        elif key in ("href", f"{{{_XLINK}}}href") and value.startswith("#"):
            element.set(key, f"#{salt}-{value[1:]}")
        elif "url(#" in value:
            element.set(key, value.replace("url(#", f"url(#{salt}-"))

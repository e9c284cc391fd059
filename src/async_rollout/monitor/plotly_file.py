"""Plotly's script as its package brings it, and the style sheets that it puts into a page."""

import base64
import hashlib
import re
from pathlib import Path

import plotly

PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
_SHEET = re.compile(r"""\.textContent=(['"`])((?:(?!\1)[^\\])*)\1""")


def style_hashes() -> list[str]:
    """Sources for a Content-Security-Policy: the text of each sheet, and of the empty one it fills later.

    A sheet that is not found here is refused by the browser; charts stand without it.
    """
    sheets = {"", *(found[2] for found in _SHEET.finditer(PLOTLY.read_text(encoding="utf-8")))}
    digests = (hashlib.sha256(sheet.encode()).digest() for sheet in sorted(sheets))
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]

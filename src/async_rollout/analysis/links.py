"""Links from a figure, a table or the report to the directory of a cell."""

import os
from pathlib import Path
from urllib.parse import quote


def link(target: Path, base: Path) -> str:
    """URL of the directory `target`, relative to the directory `base`."""
    return quote(Path(os.path.relpath(target, base)).as_posix()) + "/"

"""The program in a model's answer: the fenced block that defines what is asked for.

Fences may be of backticks or tildes, of any length, indented, with any label or with code where
the label would stand, closed at the end of a line or not at all. Of several blocks the last that
defines most of the names counts. Without fences the answer itself is the program, with prose
before and after it left out. Nothing is parsed as Python here: the text is not trusted.
"""

import re
import textwrap
from collections.abc import Sequence

_OPENING = re.compile(r"^[ \t>]*(?P<fence>`{3,9}(?!`)|~{3,9}(?!~))(?P<label>[^\n]*)$", re.MULTILINE)
_LABEL = re.compile(r"[ \t]*(?:\{[^{}]*\}|[.\w+#/-]*)(?:[ \t]+[\w-]+=\S+|[ \t]+\{[^}]*\})*[ \t]*")
_CODE_LINE = re.compile(
    r"(?:def|class|import|from|if|elif|else|for|while|with|try|except|finally|return|print|assert|async|match|"
    r"global|raise|pass)\b(?!,)|[@#)\]}]|\"\"\"|'''|[A-Za-z_][\w.]*(?:\[.*\])?\s*(?:[-+*/%&|^]?=(?!=)|\(|:\s*\w+\s*=)"
)
_STARTS = re.compile(r"(?:async\s+def|def|class|import|from\s+\S+\s+import)\b|@\w|[A-Za-z_]\w*\s*=")


def find_program(text: str, names: Sequence[str], starter: str | None = None) -> str | None:
    """The program that defines `names` (any program, if there are none); None if there is none.

    An indented answer is taken for the body that `starter` begins.
    """
    text = re.sub(r"\r+\n?", "\n", text)
    fenced = blocks(text)
    for found in (fenced, [] if fenced else [_bare(text)]):
        scored = [(_defined(block, names), i) for i, block in enumerate(found) if block.strip()]
        if scored and (max(scored)[0] or not names):
            return found[max(scored)[1]]
    body = text.strip("\n")
    if starter and not fenced and body[:1] in (" ", "\t") and body.strip() and _defined(starter, names):
        return f"{starter.rstrip()}\n{body}"
    return None


def blocks(text: str) -> list[str]:
    """The content of every fenced block, in order; newlines are single already."""
    found = []
    at = 0
    while opening := _OPENING.search(text, at):
        mark = opening["fence"]
        label = opening["label"]
        one_line = mark in label
        begin = opening.end() + 1
        if one_line or not _LABEL.fullmatch(label):  # code stands where the label would
            begin = opening.end() - len(label.lstrip())
        closing = re.compile(rf"^[ \t>]*{re.escape(mark)}+[ \t]*$|{re.escape(mark)}+[ \t]*$", re.MULTILINE)
        end = closing.search(text, begin)
        content = text[begin : end.start() if end else len(text)]
        found.append(textwrap.dedent(content))
        at = end.end() if end else len(text)
    return found


def _defined(program: str, names: Sequence[str]) -> int:
    """How many of the names the program defines at its top level."""
    return sum(
        bool(
            re.search(
                rf"^(?:(?:async[ \t]+)?def|class)[ \t]+{re.escape(n)}\b|^{re.escape(n)}[ \t]*=", program, re.M
            )
        )
        for n in names
    )


def _bare(text: str) -> str:
    """From the first line that starts a program to the last before prose begins again."""
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if _STARTS.match(line)), None)
    if first is None:
        return ""
    kept = []
    quoted = False
    for line in lines[first:]:
        if not quoted and line[:1] not in ("", " ", "\t") and not _CODE_LINE.match(line):
            break
        kept.append(line)
        quoted ^= (line.count('"""') + line.count("'''")) % 2 == 1
    return "\n".join(kept)

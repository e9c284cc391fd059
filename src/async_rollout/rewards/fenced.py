"""The program in a model's answer: the fenced block that defines what is asked for.

Fences may be of backticks or tildes, of any length, indented, with any label or with code where
the label would stand, closed at the end of a line, with text after it or not at all. Of several
blocks the last that defines most of the names counts; a lone block counts if it mentions one. Without
fences the answer itself is the program, with prose before and after it left out. Nothing is parsed as
Python here: the text is not trusted.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import islice

_MOST_FENCES = 9  # looked at for the end of one block, so that long texts take linear time
_OPENING = re.compile(r"^[ \t>]*(?P<fence>`{3,9}(?!`)|~{3,9}(?!~))(?P<label>[^\n]*)$", re.MULTILINE)
_LABEL = re.compile(r"[ \t]*(?:\{[^{}]*\}|[.\w+#/-]*)(?:[ \t]+[\w-]+=\S+|[ \t]+\{[^}]*\})*[ \t]*")
_CODE_LINE = re.compile(
    r"(?:def|class|import|from|if|elif|else|for|while|with|try|except|finally|return|print|assert|async|match|"
    r"global|raise|pass)\b(?!,)|[@#)\]}]|\"\"\"|'''|[A-Za-z_][\w.]*(?:\[.*\])?\s*(?:[-+*/%&|^]?=(?!=)|\(|:\s*\w+\s*=)"
)
_PYTHON = re.compile(
    r"\"\"\"|'''|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|#[^\n]*|[()\[\]{}]"
)  # strings and comments, so that no bracket in them counts
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
    written = [block for block in fenced if block.strip()]
    if len(written) == 1 and any(re.search(rf"\b{re.escape(name)}\b", written[0]) for name in names):
        return written[0]  # it may bind the name below an `if`, or by an import
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
        begin = opening.end() + 1
        if mark in label or not _LABEL.fullmatch(label):  # code stands where the label would
            begin = opening.end() - len(label.lstrip())
        ends = list(_ends(text, begin, re.escape(mark)))
        found += [textwrap.dedent(text[begin : end.start()]) for end in ends]
        if not ends:
            return [*found, textwrap.dedent(text[begin:])]
        after = (ends[0]["after"] or "").strip()
        next_opens = after and _LABEL.fullmatch(after)  # a block begins before this one was closed
        at = ends[0].start() if next_opens else ends[0].end()
    return found


def _ends(text: str, begin: int, mark: str) -> Iterator[re.Match[str]]:
    """The fence that ends a block; if that stands in a string, then also the first after the string."""
    fences = re.compile(rf"^[ \t>]*{mark}+(?P<after>[^\n]*)$|{mark}+[ \t]*$", re.MULTILINE)
    reader = _Reader()
    at = begin
    for number, fence in enumerate(islice(fences.finditer(text, begin), _MOST_FENCES)):
        reader.read(text[at : fence.start()])
        at = fence.start()
        if number == 0 or not reader.quote:
            yield fence
        if not reader.quote:
            return


class _Reader:
    """Reads Python text piece by piece: the triple quotes that are open where it stands, and brackets."""

    def __init__(self) -> None:
        self.quote = ""
        self.depth = 0

    def read(self, text: str) -> None:
        """Go on to the end of a piece, which ends with a line."""
        at = 0
        while True:
            if self.quote:
                end = text.find(self.quote, at)
                if end < 0:
                    return
                at, self.quote = end + 3, ""
            token = _PYTHON.search(text, at)
            if token is None:
                return
            at = token.end()
            if token[0] in ('"""', "'''"):
                self.quote = token[0]
            elif token[0] in ("(", "[", "{"):
                self.depth += 1
            elif token[0] in (")", "]", "}"):
                self.depth = max(0, self.depth - 1)


def _defined(program: str, names: Sequence[str]) -> int:
    """How many of the names the program defines at its top level."""
    return sum(
        bool(
            re.search(
                rf"^(?:(?:async[ \t]+)?def|class)[ \t]+{re.escape(n)}\b|^{re.escape(n)}[ \t]*(?::[^=\n]+)?=",
                program,
                re.M,
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
    reader = _Reader()
    for line in lines[first:]:
        inside = reader.quote or reader.depth
        if not inside and line[:1] not in ("", " ", "\t") and not _CODE_LINE.match(line):
            break
        kept.append(line)
        reader.read(line)
    return "\n".join(kept)

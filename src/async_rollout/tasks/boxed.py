"""The answer that a LaTeX text puts in a box: `\\boxed{...}` or `\\fbox{...}`."""

import re

_TOKEN = re.compile(r"\\(?:fbox|boxed)\s*\{|\\[a-z]+|\\.|[{}]", re.DOTALL)
_BARE = re.compile(r"\\(?:fbox|boxed)\s+([^\s{}$\\]+|\\[A-Za-z]+)")


def last_boxed(text: str) -> str | None:
    """Content of the last box whose braces balance; "" if no box is closed, None if there is none.

    Linear in the length of the text. `\\boxed 5`, as TeX allows, is a box too.
    """
    stack: list[int] = []  # for every open brace: where a box's content begins, else -1
    found, start = None, -1
    for token in _TOKEN.finditer(text):
        written = token[0]
        if written.endswith("{") and written != "\\{":
            is_box = written != "{"
            stack.append(token.end() if is_box else -1)
            if is_box and found is None:
                found = ""
        elif written == "}" and stack:
            begun = stack.pop()
            if begun > start:
                found, start = text[begun : token.start()], begun
    for bare in _BARE.finditer(text):
        if bare.start(1) > start:
            found, start = bare[1].rstrip(".,;"), bare.start(1)
    return found

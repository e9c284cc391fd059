"""How people and models write one number: `1,000`, `$29.00`, `−5`, `3 1/2`, `1.2 × 10^3`, `50%`.

Values are exact fractions. What only looks like a number (`1.2.3`, `12:30`, `5/0`, a thousand
digits) has no value, and is read in time linear in its length.
"""

import re
from fractions import Fraction
from typing import NamedTuple

MAX_DIGITS = 400  # beyond it a literal is no answer, and exact arithmetic would be slow

_MINUS = "-−–"
_TO_HYPHEN = str.maketrans(dict.fromkeys(_MINUS, "-"))
_NUMERAL = re.compile(
    rf"""
    (?P<sign>[{_MINUS}](?=[0-9.$€£¥₹{_MINUS}]))?
    [$€£¥₹]?
    (?P<inner_sign>[{_MINUS}](?=[0-9.]))?
    (?<![^\W_]) (?<!\^)  # neither inside of a word nor an exponent
    (?P<whole> (?:(?<!\.)\.)?[0-9][0-9.,]* (?: (?<=[0-9])(?:\ [0-9]{{3}}(?![0-9]))+ (?:\.[0-9]+)? )? )
    (?: [eE](?P<exponent>[{_MINUS}+]?[0-9]+) )?
    (?: \ (?P<top>[0-9]+)/(?P<bottom>[0-9]+) | \ ?/\ ?(?P<divisor>[0-9]+(?:\.[0-9]+)?) )?
    (?P<junk> (?: [/:_'’^][{_MINUS}+]?[0-9][0-9.,]* | \.[0-9]+ )* )
    """,
    re.VERBOSE,
)
_PLAIN = re.compile(r"(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?: [0-9]{3})+)?(?:\.[0-9]+)?")
_TIMES_TEN_TO = re.compile(
    rf"(?<=[0-9])\s*(?:[×·*x]|\\times|\\cdot)\s*10\s*(?:\^|\*\*)\s*\{{?\s*([{_MINUS}+]?[0-9]+)\s*\}}?"
)
_LATEX_FRACTION = re.compile(
    rf"""
    \\[dt]?frac
    \s* (?: \{{\s* (?P<minus>[{_MINUS}])?\s* (?P<top>[0-9]+) \s*\}} | (?P<top_digit>[0-9]) )
    \s* (?: \{{\s* (?P<bottom>[0-9]+) \s*\}} | (?P<bottom_digit>[0-9]) )
    """,
    re.VERBOSE,
)
_LATEX_COMMAND = re.compile(r"\\(?:[A-Za-z]+|[,;:> ])")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_VULGAR = {"½": "1/2", "¼": "1/4", "¾": "3/4", "⅓": "1/3", "⅔": "2/3"}
# Where a fraction needs a space before it: not after its sign.
_FRACTION_BEGINS = re.compile(rf"(?<![{_MINUS}$€£¥₹ ])(?=[{''.join(_VULGAR)}]|\\[dt]?frac)")
_APART = re.compile(rf"^\s*([{_MINUS}])\s+")
_CHARACTERS = str.maketrans({"\u00a0": " ", "\u2009": " ", "\u202f": " ", "⁄": "/", "~": " ", **_VULGAR})


class Numeral(NamedTuple):
    """A number as written, and its value; None if it is malformed or too long."""

    text: str
    value: Fraction | None


def first_number(text: str) -> Numeral | None:
    """The first number in the text, None if there is none; a minus that begins the text may stand apart."""
    text = _APART.sub(r"\1", _plain(text))
    match = _NUMERAL.search(text)
    return _numeral(text, match) if match else None


def last_number(text: str) -> Numeral | None:
    """The last number in the text, None if there is none."""
    text = _plain(text)
    match = None
    for match in _NUMERAL.finditer(text):  # noqa: B007
        pass
    return _numeral(text, match) if match else None


def parse_number(text: str) -> Fraction | None:
    """Value of a text that holds exactly one number, else None."""
    text = _plain(text)
    matches = list(_NUMERAL.finditer(text))
    return _numeral(text, matches[0]).value if len(matches) == 1 else None


def _plain(text: str) -> str:
    """Typography and LaTeX that do not change a number's value, taken out of the way."""
    if "\\" in text or not text.isascii():
        text = _FRACTION_BEGINS.sub(" ", text)
    if not text.isascii():
        text = _SUPERSCRIPT.sub(lambda m: "^" + m[0].translate(_SUPERSCRIPTS), text).translate(_CHARACTERS)
    text = _TIMES_TEN_TO.sub(r"e\1", text)
    if "\\" in text or "{" in text:
        text = text.replace("{,}", ",").replace("\\!", "").replace("\\$", "$").replace("\\%", "%")
        text = _LATEX_COMMAND.sub(" ", _LATEX_FRACTION.sub(_one_line, text))
    return text


def _one_line(fraction: re.Match[str]) -> str:
    """`-1/2`, apart from a digit that follows."""
    top, bottom = fraction["top"] or fraction["top_digit"], fraction["bottom"] or fraction["bottom_digit"]
    space = " " if fraction.string[fraction.end() : fraction.end() + 1].isdigit() else ""
    return f"{'-' if fraction['minus'] else ''}{top}/{bottom}{space}"


def _numeral(text: str, match: re.Match[str]) -> Numeral:
    size = _size(match)
    written = match[0].rstrip(".,")
    if match["sign"] and _joins(text, match.start()):
        return Numeral(written[1:], size)
    negative = match["sign"] or match["inner_sign"]
    return Numeral(written, -size if negative and size is not None else size)


def _joins(text: str, at: int) -> bool:
    """True if a hyphen here stands between two things (`5-7`, `10 -5`, `top-3`): no minus."""
    before = text[at - 1 : at]
    if before == " ":
        return text[max(at - 2, 0) : at - 1].isdigit()
    return before.isalnum() or before in (")", "%")


def _size(match: re.Match[str]) -> Fraction | None:
    whole = match["whole"].rstrip(".,")
    if match["junk"] or len(match[0]) > MAX_DIGITS or not _PLAIN.fullmatch(whole):
        return None
    exponent = int(match["exponent"].translate(_TO_HYPHEN)) if match["exponent"] else 0
    if abs(exponent) > MAX_DIGITS:
        return None
    size = Fraction(whole.replace(",", "").replace(" ", "")) * Fraction(10) ** exponent
    if match["top"]:
        return size + Fraction(int(match["top"]), int(match["bottom"])) if int(match["bottom"]) else None
    if match["divisor"]:
        return size / Fraction(match["divisor"]) if Fraction(match["divisor"]) else None
    return size

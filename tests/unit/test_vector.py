"""Smaller SVG files show the same."""

import io
import re
from xml.etree import ElementTree

from matplotlib.figure import Figure

from async_rollout.analysis.figures import style
from async_rollout.analysis.figures.vector import compact

GLYPH = re.compile(r"translate\(([\d.]+) 0\)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def drawn() -> str:
    with style.styled():
        axes = Figure(figsize=(3, 2)).add_subplot()
        axes.plot([0.123456, 1 / 3, 0.9], [1e-3, 0.5, 2 / 3], marker="o", url="cell/")
        axes.set_title("--> µ < 3 & more")
        text = io.StringIO()
        axes.figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def test_every_element_stays_where_it_was():
    svg = drawn()
    before, after = (list(ElementTree.fromstring(text).iter()) for text in (svg, compact(svg)))
    assert [e.tag for e in before] == [e.tag for e in after]
    for old, new in zip(before, after, strict=True):
        assert set(old.attrib) - set(new.attrib) <= {"id", "transform"}
        if glyph := GLYPH.fullmatch(old.get("transform", "")):  # a glyph of 1/64 of its size, or finer
            assert abs(float(new.get("x")) - float(glyph[1])) <= 0.05
            continue
        for name in {"d", "x", "y", "transform"} & set(old.attrib):
            pairs = zip(NUMBER.findall(old.get(name)), NUMBER.findall(new.get(name)), strict=True)
            assert all(abs(float(a) - float(b)) <= 0.005001 for a, b in pairs)
        assert old.get("style") is None or re.sub(r"#\w+", "", old.get("style")) == re.sub(
            r"#\w+", "", new.get("style")
        )


def test_what_is_referred_to_is_there_once_and_nothing_else_has_an_id():
    small = compact(drawn())
    ids = re.findall(r'\bid="([^"]*)"', small)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', small)) == set(ids)
    assert 'href="cell/"' in small


def test_it_is_smaller_and_can_be_done_twice():
    svg = drawn()
    assert len(compact(svg)) < 0.75 * len(svg)
    assert compact(compact(svg)) == compact(svg)

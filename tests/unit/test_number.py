from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.tasks.number import first_number, last_number, parse_number


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("42", 42),
        ("007", 7),
        ("3.50", Fraction(7, 2)),
        (".25", Fraction(1, 4)),
        ("12,345,678", 12345678),
        ("12 345", 12345),
        ("12\u00a0345", 12345),
        ("2{,}500", 2500),
        (r"2\,500", 2500),
        ("1,250.75", Fraction(5003, 4)),
        ("$40", 40),
        (r"\$40", 40),
        ("€ 40", 40),
        ("£1,000.", 1000),
        ("75%", 75),
        (r"75\%", 75),
        ("6 apples", 6),
        ("6kg", 6),
        ("90 km/h", 90),
        ("18 m²", 18),
        ("-8", -8),
        ("−8", -8),
        ("–8", -8),
        ("-$8", -8),
        ("$-8", -8),
        ("(-8)", -8),
        ("x = -8", -8),
        ("3/4", Fraction(3, 4)),
        ("3 / 4", Fraction(3, 4)),
        ("2 3/4", Fraction(11, 4)),
        ("-2 3/4", Fraction(-11, 4)),
        ("2¾", Fraction(11, 4)),
        (r"\frac{9}{4}", Fraction(9, 4)),
        (r"2\dfrac{1}{4}", Fraction(9, 4)),
        (r"2\frac14", Fraction(9, 4)),
        (r"-2\frac14", Fraction(-9, 4)),
        (r"\frac12", Fraction(1, 2)),
        (r"\tfrac 1 2", Fraction(1, 2)),
        (r"\frac{1}2", Fraction(1, 2)),
        (r"\frac1{20}", Fraction(1, 20)),
        (r"-\frac{1}{2}", Fraction(-1, 2)),
        (r"-\frac12", Fraction(-1, 2)),
        (r"−\dfrac{1}{2}", Fraction(-1, 2)),
        (r"\frac{-1}{2}", Fraction(-1, 2)),
        (r"\frac{ - 1 }{2}", Fraction(-1, 2)),
        (r"-$\frac{1}{2}$", Fraction(-1, 2)),
        ("½", Fraction(1, 2)),
        ("-½", Fraction(-1, 2)),
        ("−¾", Fraction(-3, 4)),
        ("-2¾", Fraction(-11, 4)),
        ("-2 ¾", Fraction(-11, 4)),
        ("-$½", Fraction(-1, 2)),
        ("about.½", Fraction(1, 2)),
        ("2.5e3", 2500),
        ("4E-2", Fraction(1, 25)),
        ("2.5 × 10^3", 2500),
        (r"2.5 \times 10^{3}", 2500),
        ("2.5·10³", 2500),
        ("**64**", 64),
        ("__64__", 64),
        ("`64`", 64),
        ("about 64.", 64),
        (r"\approx 64", 64),
    ],
)
def test_a_number_has_its_value_however_it_is_written(written, value):
    assert parse_number(written) == value


@pytest.mark.parametrize(
    "written",
    ["1.2.3", "1,00", "1,0000", "12:30", "5/0", "1/2/2024", "2^10", "1_000", "1'000", "9" * 401, "1e500"],
)
def test_what_only_looks_like_a_number_has_no_value(written):
    for read in (first_number, last_number):
        assert read(written).value is None
    assert parse_number(written) is None


@pytest.mark.parametrize("text", ["", "none", "NaN", "inf", "CO2", "H2O and B12", "-", "$", "٣"])
def test_a_text_without_numbers_has_none(text):
    assert first_number(text) is None
    assert last_number(text) is None
    assert parse_number(text) is None


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("from 3 to 9", 3, 9),
        ("between 3-9", 3, 9),
        ("12 - 5", 12, 5),
        ("12 -5", 12, 5),
        ("a top-5 list", 5, 5),
        ("12\n-5", 12, -5),
        ("(3)-4", 3, 4),
        ("3-½", 3, Fraction(1, 2)),
        ("¼-½", Fraction(1, 4), Fraction(1, 2)),
        (r"3-\frac{1}{2}", 3, Fraction(1, 2)),
        (r"\frac{1}{4}-\frac12", Fraction(1, 4), Fraction(1, 2)),
        (r"\frac123", Fraction(1, 2), 3),
        ("it costs 7, or 8.", 7, 8),
        ("the end is...6", 6, 6),
        ("the room has 21 m^2", 21, 21),
    ],
)
def test_first_and_last(text, first, last):
    assert first_number(text).value == first
    assert last_number(text).value == last
    assert (parse_number(text) is None) == (first != last)


@given(st.integers(-(10**30), 10**30))
def test_every_integer_is_read_back(n):
    for written in (str(n), f"{n:,}", f"{n:,}".replace(",", " "), f"so it is {n}.", f"**{n}**"):
        assert parse_number(written) == n


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6))
def test_every_fraction_is_read_back(top, bottom):
    assert parse_number(f"{top}/{bottom}") == Fraction(top, bottom)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=4))
def test_every_decimal_is_read_back(d):
    assert parse_number(f"{d:f}") == Fraction(d)
    assert parse_number(f"{d:,f}") == Fraction(d)

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.rewards.fenced import find_program

GOOD = "def double(n):\n    return 2 * n"


def fence(label, body=GOOD, mark="```"):
    return f"{mark}{label}\n{body}\n{mark}"


@pytest.mark.parametrize(
    "text",
    [
        fence("python"),
        fence("py"),
        fence("Python3.11"),
        fence(""),
        fence(" python "),
        fence('python title="a.py"'),
        fence("{.python .numberLines}"),
        fence("python", mark="~~~"),
        fence("python", mark="`````"),
        f"Sure!\n\n{fence('python')}\n\nIt doubles n.",
        f"```python\n{GOOD}\n",
        f"```python\n{GOOD}",
        f"```{GOOD}```",
        f"``` {GOOD}\n```",
        f"```python\n{GOOD}```",
        fence("python").replace("\n", "\r\n"),
        fence("").replace("\n", "\r\r\n"),
        fence("python").replace("\n", "\r"),
        "1. First:\n" + "\n".join("   " + line for line in fence("python").split("\n")),
        fence("python", "def double(n):\n    return n") + "\nBetter:\n" + fence("python"),
        fence("python") + "\nUsage:\n" + fence("python", "print(double(2))"),
        fence("bash", "python double.py") + "\n" + fence("python") + "\n" + fence("text", "4"),
        f"{fence('python')} This works.",
        f"{fence('python')} Done.\nUsage:\n{fence('python', 'double(2)')}",
        f"{fence('python')}: it doubles n.\n\n```\ndouble(2)\n```\n",
        f"```\nthink\n{fence('python')}\n",
        fence("markdown", f"# Answer\n{fence('python')}"),
        GOOD,
        f"{GOOD}\n\nThis doubles its argument.",
        f"The function is:\n\n{GOOD}\n\nIt works, since 2 * n is twice n.",
    ],
)
def test_the_program_is_found_however_it_is_given(text):
    assert find_program(text, ["double"]).strip() == GOOD


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot do this.",
        fence("python", ""),
        fence("python", "print(1)"),
        "`double(n)`",
        "def doubles(n): pass",
    ],
)
def test_where_it_is_not_there_is_none(text):
    assert find_program(text, ["double"]) is None


def test_a_class_and_a_name_are_definitions_too():
    assert find_program(fence("", "class Box:\n    pass"), ["Box"])
    assert find_program(fence("", "double = lambda n: 2 * n"), ["double"])
    assert find_program(fence("", "async def double(n): pass"), ["double"])
    assert find_program(fence("", "double: Callable[[int], int] = lambda n: 2 * n"), ["double"])


@pytest.mark.parametrize(
    "program",
    [
        "from operator import neg as double",
        "try:\n    import fast\nexcept ImportError:\n    def double(n): return 2 * n",
        "if True:\n    double = int",
        "double, half = int, float",
    ],
)
def test_a_lone_block_counts_however_it_binds_the_name(program):
    assert find_program(f"So:\n{fence('python', program)}", ["double"]).strip() == program
    assert find_program(f"{fence('', 'double(2)')}\n{fence('', 'print(double(2))')}", ["double"]) is None


@pytest.mark.parametrize("quote", ['"""', "'''"])
@pytest.mark.parametrize(
    "lines", [["```"], ["```python", "double(2)", "```"], ["```", "a", "```", "```", "b", "```"]]
)
def test_a_fence_in_a_docstring_does_not_end_the_block(quote, lines):
    body = "\n    ".join([quote + "Twice.", *lines, quote])
    program = f"# don't stop\ndef double(n):\n    {body}\n    return 2 * n"
    text = f"{fence('python', 'def double(n): pass')}\nBetter:\n{fence('python', program)}\nIt's twice n."
    assert find_program(text, ["double"]).strip() == program


def test_a_string_that_is_never_closed_does_not_take_the_next_block():
    broken = 'def double(n):\n    """Twice.'
    assert find_program(f"{fence('', broken)}\nOr:\n{fence('', GOOD)}", ["double"]).strip() == GOOD
    documented = GOOD.replace(":", ':\n    """Twice."""')
    assert (
        find_program(f"{fence('', broken)}\nOr:\n{fence('', documented)}", ["double"]).strip() == documented
    )


def test_the_block_that_defines_most_of_what_is_asked_counts():
    both = "class Box:\n    pass\ndef open_box(b):\n    pass"
    text = fence("", both) + "\n" + fence("", "class Box:\n    pass")
    assert find_program(text, ["Box", "open_box"]).strip() == both


def test_whatever_block_there_is_if_nothing_is_asked_for_by_name():
    assert find_program(fence("", "print(1)"), []).strip() == "print(1)"


def test_a_body_alone_follows_the_starter_code():
    assert find_program("\n    return 2 * n\n", ["double"], "def double(n):") == GOOD
    assert find_program("return 2 * n", ["double"], "def double(n):") is None
    assert find_program("    return 2 * n", ["double"]) is None


def test_bare_code_keeps_its_imports_docstring_and_helpers():
    code = (
        'import math\n\n"""Two\nlines."""\n\nLIMIT = 3\n\n@cache\ndef helper(n):\n    return n\n\n\n'
        "def double(n):\n    # twice\n    return helper(2 * n)\n\nprint(double(2))"
    )
    assert find_program(f"Here you go.\n{code}\nDone, I think.", ["double"]) == code


@pytest.mark.parametrize(
    "before",
    [
        'WORDS = [\n"one",  # (\n"two",\n]',
        "TABLE = {\n1: (2,\n3),\n'(': 4}",
        "value = max(\n1,\n2\n)",
        'TEXT = """\nany (\n"""',
    ],
)
def test_bare_code_may_have_values_of_several_lines(before):
    code = f"{before}\n\n{GOOD}"
    assert find_program(f"Here:\n{code}\nThat is all (of it).", ["double"]) == code


pieces = st.sampled_from(["```", "~~~", "python", "\n", "\r", " ", "def double(n):", "x"])


@given(st.text() | st.lists(pieces).map("".join))
def test_any_text_is_taken(text):
    found = find_program(text, ["double"])
    assert found is None or "double" in found


@pytest.mark.parametrize(
    "piece",
    [
        "```",
        "```\n",
        "```python\n",
        "~~~ x\n",
        "`",
        "\r",
        " ",
        "{",
        "a=b ",
        "def f\n",
        '"""\n',
        "'",
        "[",
        "```\n'''\n",
        '```\n\\"""\n',
    ],
)
def test_long_texts_take_linear_time(piece):
    begun = time.process_time()
    find_program("```" + piece * (200_000 // len(piece)), ["double"])
    find_program(piece * (200_000 // len(piece)), ["double"])
    assert time.process_time() - begun < 2.0

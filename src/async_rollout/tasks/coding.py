"""Eighteen short Python problems of our own: twelve to train on, six held out.

Each has right programs, and programs that are wrong as beginners' are; they show the embedded
model what a program looks like (never one of a held-out problem), and the tests of the sandbox
what must pass and what must not.
"""

from dataclasses import dataclass

import numpy as np

from async_rollout.tasks.task import Task


@dataclass(frozen=True, slots=True)
class Problem:
    """What is asked, how it is tested, and programs for it."""

    header: str  # `add(a, b)`
    asked: str
    tests: tuple[tuple[str, str], ...]  # (arguments, value)
    right: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def name(self) -> str:
        """The function's name."""
        return self.header.partition("(")[0]

    def task(self) -> Task:
        """The problem as a task."""
        tests = tuple(f"assert {self.name}({given}) == {value}" for given, value in self.tests)
        prompt = f"Write the Python function {self.header}: {self.asked}."
        return Task(f"coding-{self.name}", prompt, "coding", None, tests, f"def {self.header}:")

    def programs(self, *, right: bool) -> list[str]:
        """Whole programs, all right or all wrong."""
        bodies = self.right if right else self.wrong
        return [f"def {self.header}:\n    " + body.replace("\n", "\n    ") for body in bodies]


def generate(train_size: int, eval_size: int, seed: int) -> tuple[list[Task], list[Task]]:
    """(train, eval) tasks, at most so many, in an order drawn by the seed."""
    rng = np.random.default_rng(seed)
    sizes = ((TRAIN, train_size), (HELD_OUT, eval_size))
    train, held_out = ([p[i].task() for i in rng.permutation(len(p))[:size]] for p, size in sizes)
    return train, held_out


def demonstrations(rng: np.random.Generator, n: int, wrong_share: float) -> list[tuple[Task, str]]:
    """n pairs (training task, program), wrong ones with probability `wrong_share`."""
    pairs = []
    for _ in range(n):
        problem = TRAIN[rng.integers(len(TRAIN))]
        programs = problem.programs(right=bool(rng.random() >= wrong_share))
        pairs.append((problem.task(), programs[rng.integers(len(programs))]))
    return pairs


TRAIN = (
    Problem(
        "add(a, b)",
        "the sum of a and b",
        (("1, 2", "3"), ("-4, 4", "0"), ("10, 15", "25"), ("0.5, 0.25", "0.75")),
        ("return a + b", "return sum([a, b])"),
        ("return a - b", "return a * b", "return a + a"),
    ),
    Problem(
        "larger(a, b)",
        "the larger of a and b",
        (("1, 2", "2"), ("5, -5", "5"), ("3, 3", "3"), ("-7, -9", "-7")),
        ("return max(a, b)", "return a if a > b else b"),
        ("return a > b", "return min(a, b)", "return b"),
    ),
    Problem(
        "is_even(n)",
        "True if n is even, else False",
        (("4", "True"), ("7", "False"), ("0", "True"), ("-3", "False")),
        ("return n % 2 == 0", "return not n % 2"),
        ("return n % 2", "return n % 2 == 1", "return True"),
    ),
    Problem(
        "square(x)",
        "x times x",
        (("3", "9"), ("-4", "16"), ("0", "0"), ("1.5", "2.25")),
        ("return x * x", "return x ** 2"),
        ("return x * 2", "return x + x", "return x ^ 2"),
    ),
    Problem(
        "last(items)",
        "the last element of the list",
        (("[1, 2, 3]", "3"), ("['a']", "'a'"), ("[[], [0]]", "[0]"), ("list(range(50))", "49")),
        ("return items[-1]", "return items[len(items) - 1]"),
        ("return items[0]", "return items[len(items)]", "return items[1]"),
    ),
    Problem(
        "total(items)",
        "the sum of a list of numbers, 0 if it is empty",
        (("[1, 2, 3]", "6"), ("[]", "0"), ("[-1, 1]", "0"), ("[10]", "10")),
        ("return sum(items)", "n = 0\nfor x in items:\n    n += x\nreturn n"),
        ("return len(items)", "return items[0] + items[1]", "return max(items)"),
    ),
    Problem(
        "backwards(text)",
        "the text in reverse order",
        (("'abc'", "'cba'"), ("''", "''"), ("'aa b'", "'b aa'"), ("'x'", "'x'")),
        ("return text[::-1]", "return ''.join(reversed(text))"),
        ("return text[:-1]", "return text", "return reversed(text)"),
    ),
    Problem(
        "vowels(text)",
        "how many of the letters aeiou are in the text",
        (("'banana'", "3"), ("'rhythm'", "0"), ("''", "0"), ("'queue'", "4")),
        ("return sum(c in 'aeiou' for c in text)", "return len([c for c in text if c in 'aeiou'])"),
        ("return len(text)", "return text.count('a')", "return [c for c in text if c in 'aeiou']"),
    ),
    Problem(
        "size(x)",
        "the absolute value of x",
        (("-3", "3"), ("3", "3"), ("0", "0"), ("-2.5", "2.5")),
        ("return abs(x)", "return -x if x < 0 else x"),
        ("return -x", "return x", "return x * -1"),
    ),
    Problem(
        "doubled(items)",
        "a list with every number doubled",
        (("[1, 2]", "[2, 4]"), ("[]", "[]"), ("[-1, 0]", "[-2, 0]"), ("[7]", "[14]")),
        ("return [2 * x for x in items]", "return [x + x for x in items]"),
        ("return items * 2", "return items + items", "return [x for x in items]"),
    ),
    Problem(
        "shout(text)",
        "the text in capitals with an exclamation mark at its end",
        (("'hi'", "'HI!'"), ("''", "'!'"), ("'A b'", "'A B!'"), ("'no1'", "'NO1!'")),
        ("return text.upper() + '!'", "return f'{text.upper()}!'"),
        ("return text.upper()", "return text + '!'", "return text.title() + '!'"),
    ),
    Problem(
        "unique(items)",
        "how many different elements the list has",
        (("[1, 2, 1]", "2"), ("[]", "0"), ("['a', 'a']", "1"), ("[3, 2, 1]", "3")),
        ("return len(set(items))", "return len(dict.fromkeys(items))"),
        ("return len(items)", "return set(items)", "return len(items) - 1"),
    ),
)

HELD_OUT = (
    Problem(
        "difference(a, b)",
        "a minus b",
        (("5, 2", "3"), ("2, 5", "-3"), ("0, 0", "0"), ("1.5, 1", "0.5")),
        ("return a - b", "return a + -b"),
        ("return a + b", "return b - a", "return abs(a - b)"),
    ),
    Problem(
        "smaller(a, b)",
        "the smaller of a and b",
        (("1, 2", "1"), ("5, -5", "-5"), ("3, 3", "3"), ("-7, -9", "-9")),
        ("return min(a, b)", "return a if a < b else b"),
        ("return max(a, b)", "return a < b", "return a"),
    ),
    Problem(
        "is_odd(n)",
        "True if n is odd, else False",
        (("4", "False"), ("7", "True"), ("0", "False"), ("-3", "True")),
        ("return n % 2 == 1", "return n % 2 != 0"),
        ("return n % 2 == 0", "return False", "return n % 3 == 1"),
    ),
    Problem(
        "first(items)",
        "the first element of the list",
        (("[1, 2, 3]", "1"), ("['a']", "'a'"), ("[[], [0]]", "[]"), ("list(range(50))", "0")),
        ("return items[0]", "return next(iter(items))"),
        ("return items[-1]", "return items[1]", "return items"),
    ),
    Problem(
        "halved(items)",
        "a list with every number divided by 2",
        (("[2, 4]", "[1, 2]"), ("[]", "[]"), ("[1]", "[0.5]"), ("[-6, 0]", "[-3, 0]")),
        ("return [x / 2 for x in items]", "return [0.5 * x for x in items]"),
        ("return [x // 2 for x in items]", "return items / 2", "return [x * 2 for x in items]"),
    ),
    Problem(
        "longest(words)",
        "the longest of the words, the first if several are",
        (("['a', 'abc']", "'abc'"), ("['x']", "'x'"), ("['ab', 'cd']", "'ab'"), ("['', 'q', 'no']", "'no'")),
        ("return max(words, key=len)", "return sorted(words, key=len, reverse=True)[0]"),
        ("return max(words)", "return words[-1]", "return len(max(words, key=len))"),
    ),
)

"""Every invariant has a mutant that applies to the source as it is, still parses, and names a test."""

import ast
import re

import pytest

from mutate import ROOT, mutants

INVARIANTS = re.findall(
    r"^\d+\. `(\w+)`", (ROOT / "docs/design.md").read_text(encoding="utf-8"), flags=re.MULTILINE
)


def test_every_invariant_has_a_mutant():
    assert [mutant.name for mutant in mutants()] == INVARIANTS


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_it_applies_to_the_source_as_it_is(mutant, tmp_path):
    copy = tmp_path / mutant.file
    copy.parent.mkdir(parents=True)
    before = (ROOT / mutant.file).read_text(encoding="utf-8")
    copy.write_text(before, encoding="utf-8")
    mutant.apply(tmp_path)
    assert ast.dump(ast.parse(copy.read_text(encoding="utf-8"))) != ast.dump(ast.parse(before))
    file, _, function = mutant.test.partition("::")
    assert (ROOT / file).exists()
    assert f"def {function}" in (ROOT / file).read_text(encoding="utf-8")


def test_what_is_not_there_once_is_refused(tmp_path):
    first = mutants()[0]
    (tmp_path / first.file).parent.mkdir(parents=True)
    (tmp_path / first.file).write_text("nothing\n")
    with pytest.raises(ValueError, match="0 times, not once"):
        first.apply(tmp_path)

"""docs/failures.md: every reason that a run can give is explained, and every key that it names exists."""

import re
from pathlib import Path
from typing import get_args

from async_rollout.config.keys import known_keys
from async_rollout.config.sweep import SweepConfig
from async_rollout.records.states import Reason

PAGE = (Path(__file__).parents[2] / "docs" / "failures.md").read_text(encoding="utf-8")


def test_every_reason_is_explained():
    explained = set(re.findall(r"`reason: (\w+)`", PAGE))
    assert explained == set(get_args(Reason)) - {"", "error"}


def test_every_row_of_the_table_leads_to_a_section():
    targets = set(re.findall(r"\]\(#([\w-]+)\)", PAGE))
    titles = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    sections = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert targets == sections


def test_every_section_says_cause_what_the_software_does_and_what_is_left():
    for section in PAGE.split("\n## ")[1:-1]:
        assert re.findall(r"^\*\*(.+?)\*\*", section, re.MULTILINE) == ["Cause", "The software", "You"], (
            section
        )


def test_every_key_that_is_named_exists():
    blocks = {name.partition(".")[0] for name in known_keys(SweepConfig)}
    named = {key for key in re.findall(r"`(\w+\.\w+)[`:]", PAGE) if key.partition(".")[0] in blocks}
    assert len(named) > 10
    assert named <= set(known_keys(SweepConfig))

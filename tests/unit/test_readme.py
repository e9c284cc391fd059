"""The README shows what the published demo measured, and links to what exists."""

import csv
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
AGGREGATE = ROOT / "results/published/demo/sort/tables/mode_aggregate.csv"


def shown(row: dict) -> str:
    """A row of the README's table."""
    ages = f"{float(row['staleness_mean_mean']):.2f} ({row['staleness_max']})"
    start, end = (float(row[f"eval_sampled_{when}_mean"]) for when in ("first", "last"))
    speed = f"{float(row['trained_tokens_per_sec_mean']):,.0f}"
    cells = [row["mode"], row["objective"], row["k"], ages, f"{start:.2f} → {end:.2f}", speed]
    return f"| {' | '.join(cells)} |"


def test_the_table_is_that_of_the_published_demo():
    with AGGREGATE.open() as file:
        expected = [shown(row) for row in csv.DictReader(file)]
    assert [line for line in README.splitlines() if " → " in line and line.startswith("|")][1:] == expected


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    missing = [t for t in targets if not t.startswith("http") and not (ROOT / t).exists()]
    assert targets
    assert missing == []

"""The findings about a sweep as a table; what they are is decided in `analysis.checks`."""

import pandas as pd

from async_rollout.analysis.checks import checks as findings
from async_rollout.analysis.collect import Cells
from async_rollout.config.report import ReportConfig


def checks(cells: Cells, report: ReportConfig) -> pd.DataFrame:
    """A row a finding, the gravest first; `cell` is empty where it concerns several."""
    rows = [
        {"level": found.level, "cell": found.cell.id if found.cell else "", "finding": found.text}
        for found in findings(cells)
    ]
    return pd.DataFrame(rows, columns=["level", "cell", "finding"])

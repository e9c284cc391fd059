"""The table in docs/memory.md: what the configurations for GPUs take, by the doctor's own estimate.

`python -m async_rollout.doctor.table` writes the page anew, seen from the repository's root.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from async_rollout.config.cells import cells, resolve
from async_rollout.config.load import load_sweep
from async_rollout.config.run import RunConfig
from async_rollout.doctor.architectures import architecture
from async_rollout.doctor.memory import Prompts, estimate
from async_rollout.doctor.shape import Shape

PAGE = Path("docs/memory.md")
MARK = "<!-- made by `python -m async_rollout.doctor.table`; what follows is replaced -->\n"
GPUS = {"gsm8k": 24, "paper": 24, "math_sao": 80}  # GB of the cards that each configuration names
PROMPTS = {  # tokens, chat template and instruction included
    "sort": Prompts(40, 60),
    "gsm8k": Prompts(60, 300),
    "coding": Prompts(80, 400),
    "math": Prompts(60, 800),
}
SPARE = 0.9  # of a card's memory; the rest is for what the allocator keeps and kernels need


@dataclass(frozen=True, slots=True)
class Need:
    """The largest of some cells' needs."""

    config: str
    what: str  # dataset, mode, and with or without a critic
    devices: dict[str, int]  # bytes

    @property
    def largest(self) -> int:
        """Of the fullest GPU."""
        return max(need for device, need in self.devices.items() if device != "cpu")

    @property
    def fits(self) -> bool:
        """Whether the fullest GPU is one of those that the configuration names."""
        return self.largest <= SPARE * GPUS[self.config] * 1e9

    def __str__(self) -> str:
        alike = Counter(f"{need / 1e9:.0f}" for device, need in self.devices.items() if device != "cpu")
        gpus = " + ".join(f"{n} × {need}" for need, n in alike.items())
        host = f"{self.devices['cpu'] / 1e9:.0f}"
        return f"| `{self.config}.yaml` | {self.what} | {gpus} | {GPUS[self.config]} | {host} |"


def needs() -> list[Need]:
    """One for each configuration, dataset, mode and critic."""
    found: dict[tuple[str, str], Need] = {}
    for config in GPUS:
        sweep = load_sweep(f"config/{config}.yaml")
        shape = Shape.of_config(architecture(sweep.model.id))
        for cell in cells(sweep):
            run = resolve(sweep, cell)
            need = Need(config, _what(run), estimate(run, shape, PROMPTS[run.dataset]))
            before = found.get((config, need.what))
            if before is None or need.largest > before.largest:
                found[config, need.what] = need
    return list(found.values())


def table() -> str:
    """The needs in Markdown."""
    head = "| config | cells | GB on the GPUs in use | of | GB of host memory |\n| - | - | - | - | - |\n"
    return head + "\n".join(map(str, needs())) + "\n"


def _what(run: RunConfig) -> str:
    return f"{run.dataset}, {run.mode}" + ", critic" * (run.advantage.name == "gae")


if __name__ == "__main__":
    written = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(written.partition(MARK)[0] + MARK + "\n" + table(), encoding="utf-8")

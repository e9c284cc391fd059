"""What processes say to each other, one frozen dataclass a sentence.

Everything here is plain data and numpy, so that every process can read it without torch.
"""

from dataclasses import dataclass

from async_rollout.records.states import Reason
from async_rollout.runtime.layout import WeightLayout
from async_rollout.types import Group, Plain, Prompt, SampleId, SampleRequest, Trajectory, UpdateMetrics


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker has built its parts."""

    seconds: float  # since its process started


@dataclass(frozen=True, slots=True)
class Failed:
    """A worker's last words."""

    traceback: str
    reason: Reason = "error"


@dataclass(frozen=True, slots=True)
class Stop:
    """To a worker: end now."""


@dataclass(frozen=True, slots=True)
class Work(Plain):
    """To a rollout worker: draw these samples, under weights no older than `admitted_at`."""

    admitted_at: int
    requests: tuple[SampleRequest, ...]


@dataclass(frozen=True, slots=True)
class Cancel(Plain):
    """To a rollout worker: forget the samples of these groups."""

    groups: frozenset[int]


Started = tuple[tuple[int, int], ...]
"""(group, policy version when its first sample got a slot), of groups not reported before."""


@dataclass(frozen=True, slots=True)
class Finished(Plain):
    """From a rollout worker: samples with their texts."""

    samples: tuple[tuple[Trajectory, str], ...]
    started: Started = ()


@dataclass(frozen=True, slots=True)
class Cancelled(Plain):
    """From a rollout worker: these samples will not come, and this is what some of them had."""

    samples: tuple[SampleId, ...]
    begun: tuple[tuple[Trajectory, str], ...]


@dataclass(frozen=True, slots=True)
class Reloaded(Plain):
    """From a rollout worker: newer weights are in use; running samples went on."""

    version: int
    resumed_samples: int
    recomputed_tokens: int
    seconds: float
    started: Started = ()


@dataclass(frozen=True, slots=True)
class Pause:
    """To a rollout worker: decode nothing, from the next step boundary on, and say so."""


@dataclass(frozen=True, slots=True)
class Paused:
    """From a rollout worker: it stands still."""


@dataclass(frozen=True, slots=True)
class Resume:
    """To a rollout worker: go on."""


@dataclass(frozen=True, slots=True)
class Ping:
    """To the parameter service: are you there?"""


@dataclass(frozen=True, slots=True)
class Pong:
    """From the parameter service: yes."""


@dataclass(frozen=True, slots=True)
class Evaluate:
    """To a rollout worker: answer all prompts under the weights in a file."""

    version: int
    weights: str
    prompts: tuple[Prompt, ...]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """From a rollout worker: a sampled and a greedy answer to each prompt."""

    version: int
    sampled: tuple[str, ...]
    greedy: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BatchRequest(Plain):
    """From the trainer, after its last commit became visible: a batch for this version."""

    version: int


@dataclass(frozen=True, slots=True)
class Batch(Plain):
    """To the trainer: B groups, leased until the commit that they end in."""

    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """To the trainer, instead of a batch: write what only it has into this directory, and ask again."""

    place: str


@dataclass(frozen=True, slots=True)
class Kept:
    """From the trainer: written, with the checksum of each file."""

    version: int
    sums: dict[str, str]


@dataclass(frozen=True, slots=True)
class Save:
    """To the trainer, instead of a batch: the run is over, write the model as it is."""


@dataclass(frozen=True, slots=True)
class Saved:
    """From the trainer: written."""


@dataclass(frozen=True, slots=True)
class Committed(Plain):
    """From the trainer: the parameter service has made this version visible."""

    version: int
    metrics: UpdateMetrics
    wait_sec: float
    step_sec: float


@dataclass(frozen=True, slots=True)
class Announce:
    """From the trainer to the parameter service, once: what a buffer holds."""

    layout: WeightLayout


@dataclass(frozen=True, slots=True)
class GrantRequest(Plain):
    """From the trainer to the parameter service: which place may be written?"""


@dataclass(frozen=True, slots=True)
class Granted(Plain):
    """From the parameter service: this place."""

    place: int


@dataclass(frozen=True, slots=True)
class Written(Plain):
    """From the trainer to the parameter service: the granted place holds this version."""

    version: int


@dataclass(frozen=True, slots=True)
class Visible(Plain):
    """From the parameter service: readers see this version now."""

    version: int

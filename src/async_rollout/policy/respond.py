"""Responses of a policy to each of many prompts: what evaluation needs.

The sampling streams are those of `evaluation.seed`, the prompt's place in the list and the
sample's number, apart from every stream of the run: an evaluation neither depends on the run's
samples nor moves them.
"""

from collections import deque
from collections.abc import Callable, Sequence

from async_rollout.config.run import RunConfig
from async_rollout.policy.interface import Policy
from async_rollout.types import Prompt, SampleId, SampleRequest, Trajectory

_EVALUATION_STREAMS = 1 << 40  # added to the seed; the run's own seeds are far below


def respond(
    policy: Policy,
    prompts: Sequence[Prompt],
    config: RunConfig,
    *,
    greedy: bool,
    tell: Callable[[str], None] = lambda text: None,
) -> list[str]:
    """One text for each prompt, in their order, sampled at the run's temperature or greedy.

    `tell` hears after each step how far it is.
    """
    drawn = draw(policy, prompts, config, greedy=greedy, tell=tell)
    return [policy.codec.decode(trajectory.response_ids.tolist()) for trajectory in drawn]


def draw(
    policy: Policy,
    prompts: Sequence[Prompt],
    config: RunConfig,
    *,
    greedy: bool,
    samples: int = 1,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Trajectory]:
    """So many responses to each prompt, those of one prompt together, in the prompts' order."""
    engine = policy.engine(
        slots=config.slots, seed=_EVALUATION_STREAMS + config.evaluation.seed, version=0, greedy=greedy
    )
    waiting = deque(
        SampleRequest.of(SampleId(number, sample), prompt, config.sampling.max_new_tokens)
        for number, prompt in enumerate(prompts)
        for sample in range(samples)
    )
    drawn: list[Trajectory] = []
    while len(drawn) < len(prompts) * samples:
        starting = min(engine.free_slots, len(waiting))
        if starting:
            engine.submit([waiting.popleft() for _ in range(starting)])
        drawn += engine.step()
        tell(f"{len(drawn)} of {len(prompts) * samples} answers drawn")
    return sorted(drawn, key=lambda trajectory: trajectory.id)

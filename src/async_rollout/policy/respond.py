"""One response of a policy to each of many prompts: what evaluation needs.

The sampling streams are those of `evaluation.seed` and the prompt's place in the list, apart
from every stream of the run: an evaluation neither depends on the run's samples nor moves them.
"""

from collections import deque
from collections.abc import Sequence

from async_rollout.config.run import RunConfig
from async_rollout.policy.interface import Policy
from async_rollout.types import Prompt, SampleId, SampleRequest

_EVALUATION_STREAMS = 1 << 40  # added to the seed; the run's own seeds are far below


def respond(policy: Policy, prompts: Sequence[Prompt], config: RunConfig, *, greedy: bool) -> list[str]:
    """Texts in the prompts' order, sampled at the run's temperature or greedy."""
    engine = policy.engine(
        slots=config.slots, seed=_EVALUATION_STREAMS + config.evaluation.seed, version=0, greedy=greedy
    )
    waiting = deque(
        SampleRequest.of(SampleId(number, 0), prompt, config.sampling.max_new_tokens)
        for number, prompt in enumerate(prompts)
    )
    texts: dict[int, str] = {}
    while len(texts) < len(prompts):
        starting = min(engine.free_slots, len(waiting))
        if starting:
            engine.submit([waiting.popleft() for _ in range(starting)])
        for done in engine.step():
            texts[done.id.group] = policy.codec.decode(done.response_ids.tolist())
    return [texts[i] for i in range(len(prompts))]

"""The doctor finds what is planted, and nothing in what is sound."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from async_rollout.cli import main
from async_rollout.config.load import sweep_from_dict
from async_rollout.config.model import WarmStartConfig
from async_rollout.config.run import RunConfig
from async_rollout.doctor.memory import memory_check
from async_rollout.doctor.model import model_checks
from async_rollout.doctor.probe import Probe, probe, score
from async_rollout.doctor.settings import settings_checks
from async_rollout.learner.warm_start import warm_start
from tiny_policy import drain, run_config, sample_requests, tiny_policy


def levels(findings) -> dict[str, str]:
    return {finding.check: finding.level for finding in findings}


def probed(kind: str = "qwen2", **blocks: dict) -> Probe:
    """Samples of a tiny model, as `probe` takes them of a real one."""
    policy = tiny_policy(kind, **blocks)
    run = run_config(**blocks)
    drawn = list(drain(policy.engine(slots=8, seed=0, version=0), sample_requests(64, longest=30)).values())
    return Probe(run, policy, drawn, *score(policy, drawn, run.sampling.temperature))


@pytest.fixture(scope="module")
def sound() -> Probe:
    return probed()


def test_a_sound_model_passes(sound: Probe) -> None:
    assert set(levels(model_checks(sound)).values()) == {"ok"}
    assert memory_check(sound, [sound.run]).level == "ok"


@pytest.mark.parametrize("sampling", [{"top_k": 1}, {"top_k": 3}, {"top_p": 0.7}])
def test_biased_sampling_is_seen_in_the_samples(sampling: dict) -> None:
    biased = probed(sampling={**sampling, "allow_biased": True})
    assert levels(model_checks(biased))["sampler neutral"] == "fail"
    told_nothing = replace(biased, run=run_config())
    assert levels(model_checks(told_nothing))["sampler neutral"] == "fail"


def test_a_sampler_of_another_temperature_is_seen(sound: Probe) -> None:
    colder = replace(probed(sampling={"temperature": 0.6}), run=run_config())
    again = replace(
        colder,
        **dict(zip(("logprobs", "entropies"), score(colder.policy, colder.trajectories, 1.0), strict=True)),
    )
    found = levels(model_checks(again))
    assert (found["sampler neutral"], found["ratio"]) == ("fail", "fail")


def test_a_ratio_off_by_two_in_ten_thousand_fails(sound: Probe) -> None:
    first, *others = sound.trajectories
    off = replace(first, behavior_logprobs=first.behavior_logprobs + np.float32(2e-4))
    assert levels(model_checks(replace(sound, trajectories=[off, *others])))["ratio"] == "fail"


def test_padding_that_shows_fails(sound: Probe) -> None:
    logprobs = [values.copy() for values in sound.logprobs]
    logprobs[3][0] += 1e-3
    assert levels(model_checks(replace(sound, logprobs=logprobs)))["padding"] == "fail"


def test_samples_that_never_stop_and_wrong_stops(sound: Probe) -> None:
    cut = [replace(t, finish_reason="length") for t in sound.trajectories]
    assert levels(model_checks(replace(sound, trajectories=cut)))["stop ids"] == "warn"
    wrong = [
        replace(t, finish_reason="stop", response_ids=t.response_ids * 0 + 7) for t in sound.trajectories
    ]
    assert levels(model_checks(replace(sound, trajectories=wrong)))["stop ids"] == "fail"


def test_a_weight_that_is_not_published_or_twice_fails() -> None:
    for change in (lambda p: dict(list(p.items())[1:]), lambda p: p | {"again": next(iter(p.values()))}):
        broken = probed()
        published = change(broken.policy.parameters())
        broken.policy.parameters = lambda published=published: published
        assert levels(model_checks(broken))["weights published once"] == "fail"


def test_tied_weights_are_one_tensor(sound: Probe) -> None:
    (line,) = (f.text for f in model_checks(sound) if f.check == "weights published once")
    size = sum(p.numel() for p in sound.policy.model.parameters())
    assert line.startswith(
        f"{size:,} values in {len(sound.policy.parameters())} tensors, 1 tied names left out"
    )


def test_memory_is_that_of_the_largest_run(sound: Probe) -> None:
    def text(*runs: RunConfig) -> str:
        return memory_check(sound, runs).text.partition(" of ")[0]

    wide = run_config(train={"microbatch_tokens": 1 << 20})
    assert text(sound.run, wide) == text(wide, sound.run) == text(wide) != text(sound.run)
    vast = run_config(train={"microbatch_tokens": 1 << 40})
    assert memory_check(sound, [sound.run, vast]).level == "fail"


@pytest.fixture(scope="module")
def calculating(tmp_path_factory: pytest.TempPathFactory) -> Probe:
    """A model that has been shown how to ask the calculator, as the command looks at it."""
    directory = tmp_path_factory.mktemp("model")
    warm_start(WarmStartConfig(steps=30, batch=32).on("calculator"), directory)
    blocks = {"dataset": "calculator", "model": {"id": str(directory)}, "sampling": {"max_new_tokens": 48}}
    return probe(run_config(**blocks, data={"train_size": 64, "eval_size": 1}))


def test_what_an_environment_wrote_is_drawn_and_not_taken_for_the_policys(calculating: Probe) -> None:
    assert sum(not t.action_mask.all() for t in calculating.trajectories) > 10
    found = levels(model_checks(calculating))
    assert {found[check] for check in ("sampler neutral", "ratio", "padding", "stop ids")} == {"ok"}


def settings(**content: object) -> dict[str, str]:
    return levels(settings_checks(sweep_from_dict({"experiment": "x", "seeds": [0], **content})))


def test_settings() -> None:
    fine = {"staleness_k": [0, 4], "modes": ["areal"]}
    assert set(settings(**fine).values()) == {"ok"}
    assert settings(**fine, objective={"band": "closed_03_5"})["inert keys"] == "fail"
    assert settings(**fine, train={"updates": 19})["bounds"] == "warn"
    assert settings(**fine, rollout={"slots": 256})["slots"] == "ok"
    assert settings(**fine, rollout={"slots": 257})["slots"] == "warn"
    assert settings(**fine, rollout={"slots": 129, "workers": 2})["slots"] == "warn"
    assert settings(staleness_k=[4], modes=["lagged"], rollout={"slots": 999})["slots"] == "ok"


def test_the_command_fails_with_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text("experiment: x\nmodel: {backend: dummy}\ndata: {train_size: 8}\n")
    assert main(["doctor", "x.yaml"]) == 0
    assert all(line.startswith(("ok", "warn")) for line in capsys.readouterr().out.splitlines())
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "x.yaml", "objective.band=closed_03_5"])
    assert ended.value.code == 1
    assert "fail  inert keys: nothing reads objective.band" in capsys.readouterr().out


def test_a_model_that_cannot_be_loaded_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken").mkdir()
    Path("broken/config.json").write_text("{}")
    Path("x.yaml").write_text("experiment: x\nmodel: {id: broken}\ndata: {train_size: 8}\n")
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "x.yaml"])
    assert ended.value.code == 1
    assert "fail  model: broken on cpu: ValueError: " in capsys.readouterr().out

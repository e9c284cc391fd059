"""Mode lagged without lag is mode sync: same tokens, same losses, same final weights, bit for bit."""


import pytest
import torch

from one_process import CLOCK, Bench, Ran, run_config


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("lagged"))


def commits(ran: Ran) -> list[dict]:
    return [{key: value for key, value in row.items() if key not in CLOCK} for row in ran.metrics]


def same(a: Ran, b: Ran) -> None:
    assert a.results == b.results
    assert commits(a) == commits(b)
    assert a.weights.keys() == b.weights.keys()
    assert all(torch.equal(a.weights[name], b.weights[name]) for name in a.weights)


def test_lagged_k0_equals_sync(bench: Bench) -> None:
    sync, lagged = (bench.run(mode, run_config(mode, 0)) for mode in ("sync", "lagged"))
    same(sync, lagged)
    assert [{k: v for k, v in row.items() if k != "seconds"} for row in sync.evals] == [
        {k: v for k, v in row.items() if k != "seconds"} for row in lagged.evals
    ]
    assert sum(row["optimizer_steps"] for row in sync.metrics) > 3  # something was learned


def test_a_seed_repeats_lagged_and_another_does_not(bench: Bench) -> None:
    first, again = (bench.run(name, run_config("lagged", 2)) for name in ("first", "again"))
    same(first, again)
    config = run_config("lagged", 2).model_copy(update={"seed": 1})
    assert bench.run("other", config).results != first.results


@pytest.mark.parametrize("k", [0, 1, 4, 9])
def test_a_batch_is_exactly_k_versions_old(bench: Bench, k: int) -> None:
    """Batch n, trained at version n, was drawn by version n − min(n, K): also where K exceeds the run."""
    ran = bench.run(f"k{k}", run_config("lagged", k))
    for n, row in enumerate(ran.metrics):
        assert row["staleness"] == {str(min(n, k)): row["trained_tokens"]}
        assert row["waiting_groups"] == 4 * (min(n + k, 5) - n)
    assert all(row["staleness"] == min(row["trained_at"], k) for row in ran.results)
    samples = ran.summary["samples"]
    assert samples == {"generated": 96, "trained": 96, "dropped": {}, "abandoned": 0}
    assert ran.summary["staleness_max"] == min(k, 5)
    assert ran.summary["groups"] == {"submitted": 24, "trained": 24}

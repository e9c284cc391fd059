"""When a run has collapsed: the rule by an independent count."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from async_rollout.config.collapse import CollapseConfig
from async_rollout.runtime.collapse import collapsed


def commits(*correct: int, of: int = 10) -> list[SimpleNamespace]:
    return [SimpleNamespace(correct=c, incorrect=of - c) for c in correct]


def test_it_is_off_by_default() -> None:
    assert not collapsed(commits(*[10] * 10, *[0] * 90), CollapseConfig())


def test_it_takes_successive_whole_windows_below_the_share() -> None:
    two = CollapseConfig(windows=2, window=2, share=0.5)
    assert not collapsed(commits(8, 8, 0, 0), two)
    assert not collapsed(commits(8, 8, 0, 0, 0), two)
    assert collapsed(commits(8, 8, 0, 0, 0, 0), two)
    assert not collapsed(commits(8, 8, 0, 0, 9, 9, 0, 0), two)
    assert collapsed(commits(8, 8, 0, 0, 9, 9, 0, 0, 3, 4), two)


def test_exactly_the_share_is_no_collapse_and_nothing_falls_below_zero() -> None:
    one = CollapseConfig(windows=1, window=1, share=0.5)
    assert not collapsed(commits(8, 4), one)
    assert collapsed(commits(8, 3), one)
    assert not collapsed(commits(0, 0), one)
    assert not collapsed(commits(0, 0, of=0), one)


@given(
    st.lists(st.integers(0, 10), max_size=30),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([0.25, 0.5, 0.9]),
)
def test_the_rule_equals_a_count_by_hand(rates, window, windows, share) -> None:
    run, verdict = 0, False
    for end in range(2 * window, len(rates) + 1, window):
        run = run + 1 if sum(rates[end - window : end]) < share * sum(rates[:window]) else 0
        verdict = end == len(rates) and run >= windows
    config = CollapseConfig(windows=windows, window=window, share=share)
    assert collapsed(commits(*rates), config) == verdict

"""Where the monitor may be served, and under which names."""

import sys

import pytest

from async_rollout.config.errors import ConfigError
from async_rollout.monitor.guard import host_name
from async_rollout.monitor.server import check_address, is_loopback, names_of, serve


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_loopback_needs_no_token(host):
    assert is_loopback(host)
    check_address(host, None)
    assert names_of(host) == {"localhost", "127.0.0.1", "[::1]"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "login.cluster.example", ""])
def test_any_other_address_needs_one(host):
    with pytest.raises(ConfigError, match="--token"):
        check_address(host, None)
    check_address(host, "sixteen-letters!")
    assert host.lower() in {name.strip("[]") for name in names_of(host)}


def test_a_token_that_is_guessed_is_refused_and_not_repeated():
    with pytest.raises(ConfigError, match="too short") as refused:
        check_address("0.0.0.0", "hunter2")
    assert "hunter2" not in str(refused.value)


def test_a_directory_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        serve(tmp_path / "nowhere", "127.0.0.1", 0, None)


@pytest.mark.parametrize(
    ("header", "name"),
    [("Localhost:80", "localhost"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]"), ("a.b", "a.b"), ("", "")],
)
def test_the_name_in_a_host_header(header, name):
    assert host_name(header) == name


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ConfigError, match=r"\.\[monitor\]"):
        serve(tmp_path, "127.0.0.1", 0, None)

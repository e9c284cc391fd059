"""The monitor's answers: what they hold, and what they refuse."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import pytest

pytest.importorskip("starlette", reason="the monitor's extra is not installed")
from starlette.testclient import TestClient

from async_rollout.monitor import collect_metrics
from async_rollout.monitor.app import build_app
from async_rollout.monitor.stream import Stream
from async_rollout.monitor.watcher import Watcher
from monitored import answer, commit, enter, evaluate, expect, finish, start, tear
from summaries import a_cell

DONE, RUNNING, QUEUED = a_cell(), a_cell(seed=1), a_cell(seed=2)
HOSTS = frozenset({"localhost", "[::1]"})
TOKEN = "a-long-enough-token"
HOSTILE = "</pre><script>alert(1)</script>\u2028<img src=x onerror=alert(1)>"


@pytest.fixture
def results(tmp_path):
    """One cell done, one running with a torn file, one queued; a secret beside them."""
    results = tmp_path / "results"
    expect(results, DONE, RUNNING, QUEUED)
    for cell in (DONE, RUNNING):
        directory = start(results, cell)
        enter(directory, "running", time=2e9)
        commit(directory, 1, 2, 3)
        evaluate(directory, 0, 2)
        answer(directory, HOSTILE)
        tear(directory / "metrics.jsonl")
        (directory / "stdout.log").write_text(f"log of {cell.id}\n")
    finish(results / "demo" / "sort" / "runs" / DONE.id, DONE)
    (tmp_path / "secret").write_text("the secret")
    return results


def client_of(results, token=None):
    return TestClient(
        build_app(results, HOSTS, token), base_url="http://localhost:8790", follow_redirects=False
    )


@pytest.fixture
def client(results):
    with client_of(results) as client:
        while client.get("/api/cells").json()["sweep"]["states"] != {"done": 1, "running": 1, "queued": 1}:
            pass
        yield client


def id_of(cell):
    return f"demo/sort/{cell.id}"


def test_every_answer_is_as_its_schema_says(client):
    schemas = client.get("/api/schema").json()
    paths = {"/api/cells": ["/api/cells"]}
    for kind in ("cells", "metrics"):
        paths[f"/api/{kind}/<id>"] = [f"/api/{kind}/{id_of(cell)}" for cell in (DONE, RUNNING, QUEUED)]
    assert paths.keys() == schemas.keys()
    for name, urls in paths.items():
        jsonschema.Draft202012Validator.check_schema(schemas[name])
        for url in urls:
            jsonschema.validate(client.get(url).json(), schemas[name])


def test_metrics_come_whole_and_then_only_what_is_new(client, results):
    url = f"/api/metrics/{id_of(RUNNING)}"
    whole = client.get(url).json()
    assert whole["columns"]["version"] == [1, 2, 3]
    assert [point["version"] for point in whole["evals"]] == [0, 2]
    after = client.get(url, params={"epoch": whole["epoch"], "after": 2}).json()
    assert after["columns"]["version"] == [3]
    other = client.get(url, params={"epoch": whole["epoch"] + 1, "after": 2}).json()
    assert other["columns"]["version"] == [1, 2, 3]
    assert client.get(url, params={"after": "x"}).status_code == 400


def test_a_finished_cell_has_its_history_too(client):
    assert client.get(f"/api/metrics/{id_of(DONE)}").json()["columns"]["version"] == [1, 2, 3]


def test_a_cells_page_has_samples_logs_and_configuration(client):
    detail = client.get(f"/api/cells/{id_of(RUNNING)}").json()
    assert detail["samples"][0]["response"] == HOSTILE
    assert detail["logs"]["stdout.log"] == f"log of {RUNNING.id}\n"
    assert detail["config"]["seed"] == 1
    assert detail["staleness"] == {"trained": {"0": 1200, "1": 1800, "2": 900}}
    assert {span["name"] for span in detail["timeline"]} == {"wait for batch", "train"}


def test_model_output_cannot_end_a_script_or_a_line(client):
    text = client.get(f"/api/cells/{id_of(RUNNING)}").text
    assert "\u2028" not in text
    assert text.isascii()


@pytest.mark.parametrize("kind", ["cells", "metrics"])
@pytest.mark.parametrize(
    "path",
    [
        "../../etc/passwd",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "/etc/passwd",
        "demo/sort/../../../secret",
        "demo/sort",
        "demo/sort/nothing",
        "",
        "%00",
    ],
)
def test_what_is_no_cell_is_not_there(client, kind, path):
    answer = client.get(f"http://localhost:8790/api/{kind}/{path}")
    assert answer.status_code == 404
    assert "root:" not in answer.text


@pytest.mark.parametrize("path", ["../app.py", "..%2fapp.py", "%2e%2e/guard.py", "/etc/passwd", ""])
def test_static_files_are_the_pages_own(client, path):
    assert client.get(f"http://localhost:8790/static/{path}").status_code in (404, 405)


@pytest.mark.parametrize("name", ["stdout.log", "results.jsonl", "config.json"])
def test_a_link_out_of_the_results_is_not_followed(client, results, name):
    path = results / "demo" / "sort" / "runs" / RUNNING.id / name
    path.unlink()
    path.symlink_to(results.parent / "secret")
    assert "the secret" not in client.get(f"/api/cells/{id_of(RUNNING)}").text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/api/cells", "/static/main.js", "/nothing"])
def test_reading_is_all_there_is(client, method, path):
    assert client.request(method, path).status_code == 405


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "[::2]:8790", ""]
)
def test_a_foreign_host_header_is_refused(client, host):
    answer = client.get("/api/cells", headers={"Host": host})
    assert answer.status_code == 400
    assert "demo" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "localhost:9999", "LOCALHOST:1", "[::1]:8790"])
def test_the_own_names_are_answered_whatever_the_port(client, host):
    assert client.get("/", headers={"Host": host}).status_code == 200


def test_every_answer_forbids_foreign_content(client):
    for path in ("/", "/api/cells", "/static/main.js", "/nothing", "/metrics"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self';" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_the_page_has_no_inline_script_and_names_no_other_host(client):
    page = client.get("/").text
    assert "<script>" not in page
    assert "://" not in page
    assert 'on="' not in page.replace(' content="', "")


def test_without_the_token_nothing_is_told(results):
    with client_of(results, TOKEN) as client:
        for path in ("/", "/api/cells", "/metrics", "/static/main.js", "/api/stream", "/?token=wrong"):
            answer = client.get(path)
            assert answer.status_code == 401, path
            assert TOKEN not in answer.text
        assert client.get("/api/cells", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.get("/api/cells", headers={"Authorization": "Bearer tøken".encode()}).status_code == 401


def test_a_link_with_the_token_becomes_a_cookie(results):
    with client_of(results, TOKEN) as client:
        answer = client.get(f"/?k=4&token={TOKEN}")
        assert answer.status_code == 303
        assert answer.headers["location"] == "?k=4"
        assert "HttpOnly" in answer.headers["set-cookie"]
        assert client.get("/api/cells").status_code == 200  # by the cookie


def test_prometheus_format(client):
    lines = client.get("/metrics").text.splitlines()
    assert 'async_rollout_cells{state="running"} 1' in lines
    assert 'async_rollout_cells{state="stalled"} 0' in lines
    label = f'{{experiment="demo",dataset="sort",cell="{RUNNING.id}"}}'
    assert f"async_rollout_cell_version{label} 3" in lines
    assert not any("None" in line for line in lines)


def test_names_cannot_break_the_prometheus_format(tmp_path):
    (tmp_path / "demo" / "sort" / "runs" / 'a"} 1\nevil{x="\\').mkdir(parents=True)
    with client_of(tmp_path) as client:
        while client.get("/api/cells").json()["cells"] == []:
            pass
        lines = client.get("/metrics").text.splitlines()
    assert not any(line.startswith("evil") for line in lines)
    assert any(r'cell="a\"} 1\nevil{x=\"\\"' in line for line in lines)


def test_numbers_that_are_none_become_null(client, results):
    path = results / "demo" / "sort" / "runs" / RUNNING.id / "results.jsonl"
    path.write_text('{"reward": NaN, "tokens": 1e999, "response": "x"}\n')
    (sample,) = client.get(f"/api/cells/{id_of(RUNNING)}").json()["samples"]
    assert sample == {"reward": None, "tokens": None, "response": "x"}


def test_python_gets_the_same_as_http(client, results):
    collected = collect_metrics(results)
    assert collected.keys() == {id_of(cell) for cell in (DONE, RUNNING, QUEUED)}
    for id_, one in collected.items():
        told = client.get(f"/api/metrics/{id_}").json()
        assert json.loads(json.dumps(one["metrics"]))["columns"] == told["columns"]
    with pytest.raises(FileNotFoundError, match="nowhere"):
        collect_metrics(results / "nowhere")


def test_the_stream_tells_all_and_then_what_changes(results):
    watcher = Watcher(results)
    watcher.scan(2e9)
    stream = Stream(watcher)

    async def listen(last_id=None, act=lambda: None):
        lines = stream.lines(last_id)
        assert (await anext(lines)).startswith("retry:")
        if last_id is None:
            first = _event(await anext(lines))
            act()
            return first, _event(await anext(lines))
        return _event(await anext(lines))

    def act():
        commit(results / "demo" / "sort" / "runs" / RUNNING.id, 4)
        watcher.scan(2e9 + 100)

    (_, first), (id_, second) = _run(listen(act=act))
    assert first["fresh"]
    assert len(first["cells"]) == 3
    assert not second["fresh"]
    assert RUNNING.id in [card["cell"] for card in second["cells"]]
    restarted = Stream(watcher)
    _, _, revision = id_.partition("-")
    assert int(revision) > 0
    lines = restarted.lines(id_)
    again = _run(_second(lines))
    assert _event(again)[1]["fresh"]  # another server: everything anew


def _run(coroutine):
    """In a thread: a browser test leaves this one with a loop of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


async def _second(lines):
    await anext(lines)
    return await anext(lines)


def _event(text):
    fields = dict(line.split(": ", 1) for line in text.strip().splitlines())
    return fields["id"], json.loads(fields["data"])

"""The monitor's page in a browser: Debian's Chromium, driven by Playwright."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
import yaml

pytest.importorskip("starlette", reason="pip install -e '.[monitor]'")
pytest.importorskip("pytest_playwright", reason="pip install pytest-playwright")
from playwright.sync_api import Page, expect

from monitored import answer, commit, enter, evaluate, finish, start
from monitored import expect as announce
from summaries import a_cell

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore:Session-scoped fixtures defined as instance"),  # pytest-playwright's
]
ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
SWEEP = {
    "experiment": "live",
    "datasets": ["sort"],
    "modes": ["sync", "areal"],
    "staleness_k": [2],
    "decoupled": [1],
    "seeds": [0],
    "model": {"backend": "tabular"},
    "batch": {"groups": 4, "group_size": 4},
    "data": {"train_size": 64, "eval_size": 16},
    "evaluation": {"every": 100},
    "train": {"updates": 200},
    "stress": {"commit_sec": 0.02},  # to be seen on the way
}


@pytest.fixture(scope="session")
def browser_type_launch_args():
    """Debian's browser, with nothing of its own on the network."""
    switches = (
        "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
        "disable-component-update disable-sync"
    )
    return {"executable_path": CHROMIUM, "args": [f"--{switch}" for switch in switches.split()]}


class Server:
    """A monitor in a process of its own."""

    def __init__(self, results: Path, port: int = 0):
        command = [BIN / "async-rollout", "monitor", results, "--port", str(port)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.url = re.search(r"http://\S+", self.process.stderr.readline())[0]

    @property
    def port(self) -> int:
        return int(self.url.rstrip("/").rpartition(":")[2])

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)
        self.process.stderr.close()


@pytest.fixture
def serve():
    """Starts monitors, and ends them."""
    servers = []

    def begin(results: Path, port: int = 0) -> Server:
        servers.append(Server(results, port))
        return servers[-1]

    yield begin
    for server in servers:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture
def clean(page: Page):
    """The page; at the end there must be no error of a script and no request to elsewhere."""
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith("http://127.0.0.1:") else wrong.append(r.url))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    yield page
    assert wrong == []


@pytest.fixture
def results(tmp_path):
    """A small sweep: two done, one running, one failed, one queued."""
    cells = [a_cell(k=k, seed=seed) for k in (0, 4) for seed in (0, 1)] + [a_cell(mode="sync", k=0)]
    announce(tmp_path, *cells)
    for cell in cells[:4]:
        directory = start(tmp_path, cell)
        enter(directory, "setting up", time=time.time(), host="elsewhere")
        enter(directory, "running", time=time.time(), host="elsewhere")
        fresh = {"staleness": {"0": 1300}, "staleness_mean": 0.0, "staleness_max": 0} if cell.k == 0 else {}
        commit(directory, *range(1, 31), **fresh)
        evaluate(directory, 0, 10, 20, 30)
        answer(directory, HOSTILE)
        (directory / "stdout.log").write_text(f"{HOSTILE}\nthe log's last line\n")
    for cell in cells[:2]:
        finish(tmp_path / "demo" / "sort" / "runs" / cell.id, cell)
    failed = tmp_path / "demo" / "sort" / "runs" / cells[2].id
    enter(failed, "failed", reason="out_of_memory", detail=HOSTILE, host="elsewhere")
    return tmp_path


def rows(page: Page):
    return page.locator("#cells tbody tr")


def points(page: Page, plot: str) -> int:
    """Points of the longest curve in a plot; -1 before it is drawn."""
    return int(page.locator(plot).get_attribute("data-points") or -1)


def test_a_cell_is_seen_live(clean, serve, tmp_path):
    cell = a_cell()
    announce(tmp_path, cell)
    clean.goto(serve(tmp_path).url)
    state = clean.locator("#cells .status")
    expect(state).to_have_text("queued")
    clean.evaluate("window.sameDocument = true")
    directory = start(tmp_path, cell)
    enter(directory, "setting up", time=time.time())
    expect(state).to_have_text("setting up")
    enter(directory, "running", time=time.time())
    for versions in (range(1, 4), range(4, 9)):
        commit(directory, *versions)
        expect(state).to_have_text("running")
        expect(clean.locator("#plot")).to_have_attribute("data-points", str(versions[-1]))
    finish(directory, cell)
    expect(state).to_have_text("done")
    assert clean.evaluate("window.sameDocument")


@pytest.mark.long
def test_a_sweep_is_seen_from_its_start_to_its_end(clean, serve, tmp_path):
    config = tmp_path / "sweep.yaml"
    config.write_text(yaml.safe_dump(SWEEP))
    results = tmp_path / "results"
    results.mkdir()
    server = serve(results)
    clean.goto(server.url)
    expect(clean.locator("#connection")).to_have_text("live")
    expect(clean.locator("#list-note")).to_contain_text("No cell")
    clean.evaluate("window.sameDocument = true")
    seen = set()
    command = [BIN / "snakemake", "-s", ROOT / "Snakefile", "--directory", tmp_path, "--configfile", config]
    command += ["--cores", "1", "--quiet", "all", "--until", "run"]
    with (tmp_path / "workflow.log").open("w") as log:
        workflow = subprocess.Popen(
            command, stdout=log, stderr=log, env=os.environ | {"OMP_NUM_THREADS": "1"}
        )
        grown = []
        while workflow.poll() is None:
            states = clean.locator("#cells .status").all_inner_texts()
            seen.update(states)
            if "running" in states:
                grown.append(points(clean, "#plot"))
            clean.wait_for_timeout(50)
    assert workflow.returncode == 0, (tmp_path / "workflow.log").read_text()
    expect(clean.locator("#cells .status", has_text="done")).to_have_count(2, timeout=10_000)
    assert {"queued", "setting up", "running"} <= seen
    assert len({n for n in grown if n > 0}) > 1, grown  # the curve grew while it was looked at
    expect(clean.locator("#plot")).to_have_attribute("data-points", "200")
    assert clean.evaluate("window.sameDocument")


def test_filters_are_in_the_address_and_come_back_with_it(clean, serve, results):
    clean.goto(serve(results).url)
    expect(rows(clean)).to_have_count(5)
    expect(clean.locator("#cells .status").first).to_have_text("failed")  # troubled cells first
    clean.locator("select[name=k]").select_option("4")
    expect(rows(clean)).to_have_count(2)
    clean.get_by_role("button", name="running").click()
    expect(rows(clean)).to_have_count(1)
    assert "k=4" in clean.url
    assert "state=running" in clean.url
    clean.reload()
    expect(rows(clean)).to_have_count(1)
    clean.locator("select[name=y]").select_option("staleness")
    expect(clean.locator("#plot")).to_contain_text("staleness, mean")
    clean.get_by_label("Search").fill("s0")
    expect(rows(clean)).to_have_count(0)


def test_a_cell_opens_by_keyboard_and_closes_again(clean, serve, results):
    clean.goto(serve(results).url)
    clean.locator("#cells tbody a").first.focus()
    clean.keyboard.press("Enter")
    page = clean.locator("#cell")
    expect(page.locator("h2")).to_have_text(f"demo/sort/{a_cell(k=4).id}")
    expect(page.locator("#plot-pass .scatterlayer .trace")).to_have_count(2)
    expect(page.locator("#plot-ages .bars .point")).to_have_count(3)
    expect(page.locator("#plot-timeline .bars .point").first).to_be_attached()
    expect(page.locator("#cell-stdout")).to_contain_text("the log's last line")
    expect(page.locator("#cell-samples .sample")).to_have_count(1)
    clean.keyboard.press("Escape")
    expect(rows(clean)).to_have_count(5)
    clean.go_back()
    expect(page.locator("h2")).to_be_visible()
    clean.go_back()
    clean.keyboard.press("/")
    expect(clean.get_by_label("Search")).to_be_focused()


def test_what_a_model_or_an_error_says_stays_text(clean, serve, results):
    odd = results / "demo" / "sort" / "runs" / "<img src=x onerror=alert(1)>-<b>"
    odd.mkdir()
    clean.goto(serve(results).url)
    expect(clean.locator("#cells")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(clean.locator("#cells .finding").first).to_contain_text("<script>")
    clean.locator("#cells tbody a").first.click()
    expect(clean.locator("#cell-samples")).to_contain_text(HOSTILE)
    expect(clean.locator("#cell-stdout")).to_contain_text(HOSTILE)
    assert clean.locator("#main img, #main script").count() == 0
    assert clean.evaluate("window.hacked") is None


def test_a_restarted_server_is_found_again(page, serve, results):
    server = serve(results)
    page.goto(server.url)
    expect(rows(page)).to_have_count(5)
    page.evaluate("window.sameDocument = true")
    server.stop()
    expect(page.locator("#connection")).to_contain_text("lost", timeout=10_000)
    expect(rows(page)).to_have_count(5)  # what was known stays
    commit(results / "demo" / "sort" / "runs" / a_cell(seed=1).id, *range(31, 41))
    serve(results, server.port)
    expect(page.locator("#connection")).to_have_text("live", timeout=10_000)
    expect(page.locator("#cells tr", has_text="running")).to_contain_text("40 / 60")
    assert page.evaluate("window.sameDocument")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_every_width_and_both_schemes(clean, serve, results, scheme, width):
    clean.set_viewport_size({"width": width, "height": 800})
    clean.emulate_media(color_scheme=scheme)
    clean.goto(serve(results).url)
    overview = clean.locator("#plot .scatterlayer .trace").first
    for wanted in (overview, clean.locator("#plot-queue .scatterlayer .trace").first):
        expect(wanted).to_be_attached()
        assert clean.evaluate("document.documentElement.scrollWidth") <= width
        if wanted is overview:
            clean.locator("#cells tbody a").first.click()
    channel = int(re.search(r"\d+", clean.evaluate("getComputedStyle(document.body).backgroundColor"))[0])
    assert (channel < 100) == (scheme == "dark")


@pytest.mark.long
def test_two_thousand_cells_cost_little(clean, serve, tmp_path):
    cells = [a_cell(k=k, decoupled=d, seed=s) for s in range(250) for k in (0, 2, 4, 8) for d in (0, 1)]
    announce(tmp_path, *cells)
    first = start(tmp_path, cells[0])
    enter(first, "running", host="elsewhere")
    commit(first, *range(1, 61))
    finish(first, cells[0])
    texts = {path.name: path.read_text() for path in first.iterdir()}
    for cell in cells[1:]:
        directory = tmp_path / "demo" / "sort" / "runs" / cell.id
        directory.mkdir()
        for name, text in texts.items():
            (directory / name).write_text(text)
    for cell in cells[:100]:  # these did not finish
        (tmp_path / "demo" / "sort" / "runs" / cell.id / "summary.json").unlink()
    server = serve(tmp_path)
    while '"unread":0' not in urlopen(f"{server.url}api/cells").read().decode():
        time.sleep(0.5)
    clean.goto(server.url)  # the browser itself is warm after this
    expect(rows(clean)).to_have_count(200)
    began = time.monotonic()
    clean.goto(server.url)
    clean.wait_for_selector("#cells tbody tr:nth-child(200):last-child")
    clean.get_by_label("Search").fill("k8 s24")
    clean.wait_for_selector("#cells tbody tr:nth-child(22):last-child")
    usable = time.monotonic() - began
    clean.goto("about:blank")
    process = psutil.Process(server.process.pid)
    time.sleep(3)
    before, began = sum(process.cpu_times()[:2]), time.monotonic()
    time.sleep(20)
    idle = (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - began)
    memory = process.memory_info().rss / 2**20
    print(f"usable after {usable:.2f} s, {memory:.0f} MB, {idle:.1%} of a core")
    assert usable < 2
    assert memory < 200
    assert idle < 0.05

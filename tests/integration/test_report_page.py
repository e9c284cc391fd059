"""The report in a browser: Debian's Chromium, driven by Playwright, from a file, without a network."""

import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("pytest_playwright", reason="pip install pytest-playwright")
from playwright.sync_api import Page, expect

from async_rollout.analysis.collect import collect
from async_rollout.analysis.figures.catalog import FIGURES, write_figure
from async_rollout.analysis.report import write_report
from async_rollout.analysis.tables.catalog import TABLES, write_tables
from async_rollout.config.report import ReportConfig
from summaries import grid, write_grid

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore:Session-scoped fixtures defined as instance"),  # pytest-playwright's
]
CELLS = grid(3)


@pytest.fixture(scope="session")
def browser_type_launch_args():
    """Debian's browser, with nothing of its own on the network."""
    switches = (
        "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
        "disable-component-update disable-sync"
    )
    return {"executable_path": CHROMIUM, "args": [f"--{switch}" for switch in switches.split()]}


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """A sweep like the demo's with three seeds, one of its cells missing."""
    results = tmp_path_factory.mktemp("results")
    paths = write_grid(results, CELLS)
    paths[CELLS[-1]].unlink()
    cells = collect(paths)
    write_tables(cells, results / "sort" / "tables", ReportConfig())
    for name in FIGURES:
        write_figure(name, cells, results / "sort" / "figures")
    path = results / "report.html"
    write_report(cells, path, ReportConfig(), experiment="tried", command="snakemake --configfile a.yaml")
    return path


@pytest.fixture
def clean(page: Page, report: Path):
    """The open page; at the end there must be no error of a script and no request but for the file."""
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    allowed = (report.as_uri(), "data:image/png")
    page.on("request", lambda r: None if r.url.startswith(allowed) else wrong.append(r.url))
    page.goto(report.as_uri())
    yield page
    assert wrong == []


def brightness(page: Page) -> int:
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return int(re.search(r"\d+", color)[0])


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_width_and_both_schemes(clean, scheme, width):
    clean.set_viewport_size({"width": width, "height": 844})
    clean.emulate_media(color_scheme=scheme)
    assert (brightness(clean) < 100) == (scheme == "dark")
    assert clean.evaluate("document.documentElement.scrollWidth") <= width
    too_wide = """[...document.querySelectorAll("h1, h2, h3, h4, p, li, figcaption, summary, button, dd")]
        .filter((e) => !e.closest(".wide") && e.getBoundingClientRect().right > innerWidth + 1)
        .map((e) => e.textContent.slice(0, 40))"""
    assert clean.evaluate(too_wide) == []
    drawings = clean.locator(".plot svg, .plot img")
    assert drawings.count() == len(FIGURES)
    sizes = drawings.evaluate_all("all => all.map((e) => e.getBoundingClientRect().width)")
    assert min(sizes) >= 400, sizes  # narrower ones could not be read; a phone scrolls within the frame


def test_labels_of_drawings_are_not_clipped(clean):
    clean.set_viewport_size({"width": 1440, "height": 900})
    # A label is a group of glyphs, which is scaled; marks are not.
    beyond = """[...document.querySelectorAll(".plot svg")].flatMap((svg, figure) => {
        const frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll("g[transform*=scale]:has(> use)")].map((text) => {
          const box = text.getBoundingClientRect();
          return [figure, box.width && Math.max(frame.left - box.left, box.right - frame.right,
                                                frame.top - box.top, box.bottom - frame.bottom)];
        });
      })"""
    labels = clean.evaluate(beyond)
    assert {figure for figure, _ in labels} == set(range(clean.locator(".plot svg").count()))
    assert len(labels) > 20 * len(FIGURES)
    assert [label for label in labels if label[1] > 1] == []


def test_the_scheme_can_be_chosen(clean):
    clean.emulate_media(color_scheme="light")
    button = clean.locator("#theme")
    expect(button).to_have_text("dark")
    button.focus()
    clean.keyboard.press("Enter")
    assert brightness(clean) < 100
    expect(button).to_have_text("light")
    button.click()
    assert brightness(clean) > 200


def test_contents_lead_to_every_part(clean):
    clean.set_viewport_size({"width": 390, "height": 844})
    clean.reload()
    expect(clean.locator("nav a").first).not_to_be_visible()
    clean.get_by_text("Contents", exact=True).click()
    links = clean.locator("nav a")
    assert links.count() > 8
    for target in links.evaluate_all("all => all.map((a) => a.getAttribute('href'))"):
        assert clean.locator(f"[id='{target[1:]}']").count() == 1, target
    clean.locator("nav a", has_text="Throughput").click()
    expect(clean.locator("#sort-throughput-chapter")).to_be_in_viewport()


def column(page: Page, table: str, label: str) -> list[str]:
    """The texts of a column, from top to bottom."""
    labels = [text.strip() for text in page.locator(f"{table} thead button").all_text_contents()]
    cells = page.locator(f"{table} tbody tr td:nth-child({labels.index(label) + 1})")
    return [text.strip() for text in cells.all_text_contents()]


def table_of(name: str) -> str:
    """Selector of a table by its title."""
    return f'.wide[aria-label="{TABLES[name].title}"] table'


def test_tables_are_sorted_by_keyboard_and_what_is_missing_comes_last(clean):
    table, label = table_of("summary_headline"), "trained tok/s"
    button = clean.locator(f"{table} thead button", has_text=label)
    head = clean.locator(f"{table} thead th", has_text=label)
    for order in ("ascending", "descending"):
        button.focus()
        clean.keyboard.press("Enter")
        expect(head).to_have_attribute("aria-sort", order)
        *found, last = column(clean, table, label)
        assert last == ""
        numbers = [float(text.replace(",", "")) for text in found]
        assert numbers == sorted(numbers, reverse=order == "descending")


def test_rows_are_filtered(clean):
    clean.get_by_label(f"Filter the rows of {TABLES['summary_headline'].title}").fill("sync s1")
    rows = clean.locator(f"{table_of('summary_headline')} tbody tr:visible")
    expect(rows).to_have_count(2)


@pytest.mark.parametrize("how", ["click", "Enter"])
def test_a_figure_is_enlarged_and_closed_again(clean, how):
    clean.set_viewport_size({"width": 1440, "height": 900})
    plot = clean.locator("#sort-fig5c_throughput_vs_staleness ~ figure .plot").first
    small = plot.locator("svg").bounding_box()["width"]
    if how == "click":
        plot.click(position={"x": 5, "y": 5})
    else:
        plot.focus()
        clean.keyboard.press("Enter")
    dialog = clean.locator("#enlarged")
    expect(dialog).to_be_visible()
    assert dialog.locator("svg").bounding_box()["width"] > small
    assert dialog.locator("svg a").count() > 0  # points lead to their cells here too
    clean.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    expect(plot.locator("svg")).to_be_visible()


def test_a_point_and_a_row_lead_to_their_cell(clean):
    hrefs = clean.locator(".plot svg a").evaluate_all("all => all.map((a) => a.href.baseVal)")
    cells = {f"sort/runs/{cell.id}/" for cell in CELLS[:-1]}
    assert set(hrefs) == cells
    rows = clean.locator(f"{table_of('summary_headline')} tbody a")
    assert {row.get_attribute("href") for row in rows.all()} == cells


def test_everything_can_be_read_without_scripts(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    expect(page.locator(".plot svg").first).to_be_visible()
    expect(page.locator(".enlarge").first).not_to_be_visible()
    expect(page.locator("nav a").first).to_be_visible()
    context.close()

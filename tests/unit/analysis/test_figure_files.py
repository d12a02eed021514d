"""Figures and tables as files: their numbers, their layout, and what names of others may do in them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.support.printed_samples import leave_out_what_takes_long
from tests.support.random_campaigns import draw_campaign
from tests.unit.analysis.parsed_page import Page
from tests.unit.analysis.report_fixture import made
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.data import to_csv
from trialfleet_analysis.report.figures.every_figure import Figure, list_figures
from trialfleet_analysis.report.figures.forest import Forest, Mark, MarkedRow
from trialfleet_analysis.report.figures.scales import rates
from trialfleet_analysis.report.html.page import list_repeated, to_html
from trialfleet_analysis.report.latex import SIGNS, latex, to_latex
from trialfleet_analysis.report.markdown import table_lines
from trialfleet_analysis.report.pictures.drawing import PictureFormat, draw_picture, measure_text
from trialfleet_analysis.report.pictures.making import figure_files, lay_out, state_note, write_figures
from trialfleet_analysis.report.pictures.shapes import Area, Line, Picture, Words
from trialfleet_analysis.report.pictures.sizes import PictureWidth
from trialfleet_analysis.report.table_files import list_tables, table_files
from trialfleet_designs.document.tables import ReportTable, Value
from trialfleet_ledger.output_files import RECORD, replace_outputs

HOSTILE = "$\\frac{1}{0}$ <script>alert(1)</script> \x1b[2J\u202e & %s #_~^ =cmd() \n" + "x" * 90
FORMATS: tuple[PictureFormat, ...] = ("svg", "pdf", "png")
WIDTHS: tuple[PictureWidth, ...] = ("column", "slide")


@pytest.fixture(scope="module")
def report() -> Report:
    return made()


def data_of(report: Report, anchor: str) -> list[dict[str, Any]]:
    [found] = [one for one in list_figures(report) if one.anchor == anchor]
    data = found.list_data()
    return [dict(zip(data.columns, row, strict=True)) for row in data.rows]


def named(name: str, note: str = "note") -> Forest:
    row = MarkedRow(
        name, note, (Mark("these", 0.5, 0.25, 0.75), Mark("like", None, 0.1, 0.9)), ((name, name),), name
    )
    return Forest(
        "any", name, name, rates(), (row,), name, zero=0.5, below="worse", above="better", margins=(0.4,)
    )


def test_the_data_are_the_reports_numbers(report: Report) -> None:
    these = [(one["row"], one["estimate"], one["low"], one["high"]) for one in data_of(report, "conditions")[::2]]
    assert these == [
        (one.condition, of.estimate, of.low, of.high) for one in report.conditions for of in (one.these_tasks,)
    ]
    cells = [
        (one["task"], one["condition"], one["passes"], one["valid"], one["low"])
        for one in data_of(report, "cells")
    ]
    assert cells == [(one.task, one.condition, one.passes, one.valid, one.wilson.low) for one in report.cells]
    blocks = [(one["block"], one["passes"], one["valid"]) for one in data_of(report, "blocks")]
    assert blocks == [(one.block, one.passes, one.valid) for one in report.blocks]
    [turns] = {
        one.counts for one in report.analysis.distributions if (one.measure, one.condition) == ("turns", "none")
    }
    drawn = [one["trials"] for one in data_of(report, "spread-turns") if one["condition"] == "none"]
    assert drawn == list(turns)
    assert len(data_of(report, "helped")) == sum(
        len(one.endings) for one in report.cells if one.condition in report.conditions_compared
    )


def test_a_csv_file_holds_every_number_unrounded(report: Report) -> None:
    for found in list_figures(report):
        data = found.list_data()
        head, *rows = csv.reader(io.StringIO(to_csv(data)))
        assert tuple(head) == data.columns
        assert len(rows) == len(data.rows) > 0
        for written, row in zip(rows, data.rows, strict=True):
            numbers = [
                (text, value) for text, value in zip(written, row, strict=True) if not isinstance(value, str)
            ]
            assert all(text == "" if value is None else float(text) == value for text, value in numbers)


def boxes(picture: Picture) -> Iterator[tuple[Words, float, float]]:
    for shape in picture.shapes:
        if isinstance(shape, Words):
            width = measure_text(shape.text, shape.size, shape.bold)
            left = shape.x - width * {"left": 0.0, "center": 0.5, "right": 1.0}[shape.anchor]
            yield shape, left, left + width


def check_layout(found: Figure, width: PictureWidth) -> None:
    for picture in lay_out(found, width):
        for shape in picture.shapes:
            points = shape.points if isinstance(shape, Line | Area) else ((shape.x, shape.y),)
            assert all(-1 <= x <= picture.width + 1 and 0 <= y <= picture.height for x, y in points), found.anchor
        placed = list(boxes(picture))
        assert all(left > -1 and right < picture.width + 1 for _, left, right in placed), found.anchor
        for (a, left, right), (b, other_left, other_right) in combinations(placed, 2):
            apart = abs(a.y - b.y) >= 0.9 * a.size or right <= other_left + 0.5 or other_right <= left + 0.5
            assert apart, (found.anchor, a, b)


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_clipped_and_no_texts_overlap(report: Report, width: PictureWidth) -> None:
    for one in (report, draw_campaign(2).report, draw_campaign(3).report, made(3, 10, 60, declared=False)):
        for found in list_figures(one):
            check_layout(found, width)


@given(st.text(max_size=120), st.sampled_from(WIDTHS))
@settings(max_examples=40)
def test_any_name_has_room(name: str, width: PictureWidth) -> None:
    check_layout(named(name), width)


def test_what_is_too_high_goes_on_in_another_picture() -> None:
    [found] = [one for one in list_figures(made(40, 3, 50)) if one.anchor == "tasks"]
    pages = lay_out(found, "slide")
    assert len(pages) > 1
    assert all(page.height < 143 / 25.4 * 72 + 1 for page in pages)
    bold = [shape.text for page in pages for shape in page.shapes if isinstance(shape, Words) and shape.bold]
    assert [text for text in bold if text.startswith("Tasks")] == [
        f"Tasks ({n} of {len(pages)})" for n in range(1, len(pages) + 1)
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_picture_has_the_same_bytes(form: PictureFormat) -> None:
    [picture] = lay_out(named("a − b"), "column")
    assert draw_picture(picture, form) == draw_picture(picture, form)
    assert b"matplotlib.org/" not in draw_picture(picture, "png")


def test_a_pdf_carries_its_fonts() -> None:
    [picture] = lay_out(named("a − b"), "column")
    pdf = draw_picture(picture, "pdf")
    assert pdf.count(b"/FontFile2") == pdf.count(b"/Type /FontDescriptor") > 0
    assert b"/Type3" not in pdf
    assert b"CreationDate" not in pdf


def test_an_svg_names_a_generic_font_and_a_colour_of_each_mark() -> None:
    [picture] = lay_out(named("a"), "column")
    svg = draw_picture(picture, "svg").decode()
    assert set(re.findall(r"font: [^;\"]*", svg)) <= {
        f"font: {bold}{size}px 'DejaVu Sans', Verdana, sans-serif" for bold in ("", "700 ") for size in (8, 14)
    }
    assert "#0072b2" in svg


def test_a_png_is_as_wide_as_a_column_and_not_blank() -> None:
    [picture] = lay_out(named("a"), "column")
    image = Image.open(io.BytesIO(draw_picture(picture, "png"))).convert("RGB")
    assert abs(image.width - 85 / 25.4 * 300) <= 2
    colours = {colour for _, colour in image.getcolors(1 << 24) or ()}
    assert {(255, 255, 255), (0x00, 0x72, 0xB2)} <= colours


def test_names_of_others_are_text_in_a_picture() -> None:
    for picture in lay_out(named(HOSTILE), "slide"):
        root = fromstring(draw_picture(picture, "svg"))
        text = "".join(root.itertext())
        assert "$\\frac{1}{0}$" in text
        assert "\u202e" not in text
        assert not [one for one in root.iter() if one.tag.endswith("script")]
        for form in ("pdf", "png"):
            assert draw_picture(picture, form)
    [(_, raw)] = [file for file in figure_files(named("=cmd()"), "svg", "column") if file[0].endswith(".csv")]
    assert b"\n'=cmd()," in raw


UNESCAPED = re.compile(r"\\[a-zA-Z]+\{\}|\\[&%$#_{}]|\$(?:-|\\[a-z]+)\$|--|\{[\[\]*-]\}")


@given(st.text(max_size=200))
def test_latex_reads_no_text_as_a_command(text: str) -> None:
    rest = UNESCAPED.sub("", latex(text))
    assert not re.search(r"[\\{}$&#^_%~<>|\"`\[\]*]", rest)
    assert "\n" not in rest


@given(
    st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), min_size=1, max_size=4), st.text(max_size=30)
)
def test_a_latex_table_has_its_cells_and_balanced_braces(rows: list[tuple[str, str]], title: str) -> None:
    cells = tuple((Value(a, b or None), Value(b)) for a, b in rows)
    text = to_latex(ReportTable(title, (title, title), cells, frozenset({0}), lead=title))
    bare = re.sub(r"\\[{}&%$#_\\]", lambda found: "" if found[0] != "\\\\" else "\n", text)
    assert bare.count("{") == bare.count("}")
    lines = [line for line in text.splitlines() if line.endswith(r" \\")]
    assert len(lines) == 1 + len(rows)
    assert all(len(re.findall(r"(?<!\\)&", line)) == 1 for line in lines)


def test_every_table_is_a_file_of_its_own(report: Report) -> None:
    for form, end in (("latex", ".tex"), ("markdown", ".md")):
        files = dict(table_files(report, form))
        assert len(files) == len(list(list_tables(report))) > 10
        assert all(re.fullmatch(r"[a-z0-9-]+", name.removesuffix(end)) for name in files)
    assert all(b"\\toprule" in text for text in dict(table_files(report, "latex")).values())


# What LaTeX prints for what it reads, longest first.
_PRINTED = {written: sign for sign, written in sorted(SIGNS.items(), key=lambda one: -len(one[1]))}
_WRITTEN = re.compile("|".join(map(re.escape, _PRINTED)))


def read_latex(raw: bytes) -> list[list[str]]:
    rows = re.findall(r"^    (.*) \\\\$", raw.decode(), re.MULTILINE)
    return [[_WRITTEN.sub(lambda found: _PRINTED[found[0]], cell) for cell in row.split(" & ")] for row in rows]


def read_markdown(raw: bytes) -> list[list[str]]:
    head, _, *rows = [line for line in raw.decode().splitlines() if line.startswith("|")]
    cells = [re.split(r"(?<!\\) \| ", line[2:-2]) for line in (head, *rows)]
    return [[unescape(re.sub(r"\\(.)", r"\1", cell)) for cell in row] for row in cells]


def bare(cell: str) -> str:
    """A note stands in brackets in files, and in small letters on the page."""
    return re.sub(r"[()]", "", cell).strip()


def compare_tables(report: Report) -> int:
    """Of how many cells. In both formats they are those of the page, where what every row has is in a sentence."""
    text, cells = to_html(report), 0
    words, drawn = " ".join(Page(text).words), list[tuple[str, list[list[str]]]]()
    for one in re.findall(r"<table>.*?</table>", text, re.DOTALL):
        drawn += Page(one).tables.items()
    in_latex, in_markdown = dict(table_files(report, "latex")), dict(table_files(report, "markdown"))
    for name, found in list_tables(report):
        rows = read_latex(in_latex[f"{name}.tex"])
        assert rows == read_markdown(in_markdown[f"{name}.md"]), name
        assert rows[0] == list(found.columns)
        if found.title in list_repeated(report):
            continue
        shown = [[list(map(bare, row)) for row in table] for title, table in drawn if title == found.title]
        written = [list(map(bare, row)) for row in rows]
        places = [[n for n, head in enumerate(written[0]) if head in table[0]] for table in shown]
        assert [[row[n] for n in kept] for kept in places[:1] for row in written] in shown, (name, written, shown)
        for n in set(range(len(rows[0]))) - set(places[0]):
            assert rows[1][n] in words, (name, rows[0][n])
        cells += sum(map(len, rows))
    return cells


def test_a_tables_file_has_the_numbers_of_the_page(report: Report) -> None:
    assert compare_tables(report) > 500


@pytest.mark.parametrize("seed", range(11))
def test_so_has_that_of_every_design(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_what_takes_long(monkeypatch)
    assert compare_tables(draw_campaign(seed, largest=2).report) > 100


@pytest.mark.parametrize(
    ("value", "written", "marked"),
    [
        ("$0.56", r"\$0.56", "$0.56"),
        ("45.0%", r"45.0\%", "45.0%"),
        ("5/5", "5/5", "5/5"),
        ("2 m 06 s", "2 m 06 s", "2 m 06 s"),
        ("−12.5", "$-$12.5", "−12.5"),
        ("long " * 300 + "end", "long " * 300 + "end", "long " * 300 + "end"),
        ("a_b|c*", r"a\_b\textbar{}c{*}", r"a_b\|c\*"),
    ],
)
def test_a_format_escapes_what_it_reads_as_something_else(value: str, written: str, marked: str) -> None:
    found = ReportTable("Any", ("Name", "Value"), ((Value("x"), Value(value)),), frozenset({0}))
    assert rf"    x & {written} \\" in to_latex(found)
    assert f"| x | {marked} |" in table_lines(found, titled=True)


def test_a_folder_gets_figures_data_and_tables_and_loses_those_of_another_report(tmp_path: Path) -> None:
    small = made(2, 2, 3)
    replace_outputs(tmp_path, {"tasks-2.svg": b"of a larger report"}, what="figures")
    paths = write_figures(small, tmp_path, form="svg", width="column", tables="markdown").written
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in paths} | {RECORD}
    assert {f"{one.anchor}.csv" for one in list_figures(small)} <= {path.name for path in paths}


def test_a_figure_says_that_it_is_interim(report: Report) -> None:
    early = replace(
        report, banner="A demo.", progress=replace(report.progress, interim=True, complete_blocks=7, blocks=9)
    )
    assert state_note(early) == "Interim: made of the first 7 of 9 blocks. A demo."
    assert state_note(report) == ""
    [found] = [one for one in list_figures(early) if one.anchor == "rates"]
    [(_, svg), _] = figure_files(found, "svg", "slide", state_note(early))
    shown = " ".join(" ".join(fromstring(svg).itertext()).split())
    assert shown.endswith("Interim: made of the first 7 of 9 blocks. A demo.")

# SPDX-License-Identifier: Apache-2.0
"""The summary table in its four forms, the first lines of a page, and pictures that hold both IP versions."""

from __future__ import annotations

import csv
import random
import re
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest

from evenhand.analysis import analyse
from evenhand.procedure.descriptor import Section
from evenhand.report.curve_drawing import DrawnCurve, DrawnPoint, median_places, with_gaps
from evenhand.report.figures import WIDE, draw_inline
from evenhand.report.figures_throughput import addresses_picture
from evenhand.report.page import render_page
from evenhand.report.page_facts import host_facts
from evenhand.report.page_figures import pictures_of
from evenhand.report.page_head import dut_line, folded_summary, headline_figures
from evenhand.report.page_tables import sections_of
from evenhand.report.page_words import version_of_plan
from evenhand.report.summary import (
    summary_columns,
    summary_rows,
    to_summary_csv,
    to_summary_latex,
    to_summary_markdown,
)
from evenhand.run import PointState
from evenhand.run.campaign_record import CampaignRecord, PointRecord
from tests.report.campaigns import HOST, point_of, record_of, throughput_record
from tests.report.pages import Page, assert_self_contained

EVIL = "a|b & 100% $x$ \\input{/etc/passwd} <b>\x1b[31m"


def curve(plan: str, suite: str, limits: dict[int, float], **device: Any) -> list[PointRecord]:
    chance = random.Random(suite)
    return [
        throughput_record(point_of(suite, number, plan, hosts, repetitions=2), limit, chance=chance, **device)
        for number, (hosts, limit) in enumerate(limits.items())
    ]


def page_of(record: CampaignRecord) -> str:
    return render_page(record, analyse(record))


def both(**changes: Any) -> CampaignRecord:
    limits = {1: 6e5, 16: 5e6, 64: 5e6}
    return record_of([*curve("gateway-v4", "old", limits), *curve("gateway-v6", "new", limits)], **changes)


def test_page_csv_markdown_and_latex_have_the_same_rows() -> None:
    record = both()
    rows, columns = summary_rows(record), summary_columns(record)
    assert len(rows) == 6
    shown = folded_summary(record)
    assert shown is not None
    # The unit is in the heading, once for all points.
    assert all(cell.endswith(" kfps") for row in rows for cell in row[6:10])
    bare = [tuple(cell.removesuffix(" kfps") for cell in row) for row in rows]
    kept = [column.title.removesuffix(", kfps") for column in shown.columns]
    assert [tuple(cell.text.replace("\N{NO-BREAK SPACE}", " ") for cell in row) for row in shown.rows] == [
        tuple(cell for column, cell in zip(columns, row, strict=True) if column.title in kept) for row in bare
    ]
    # What all rows have in common is said once, so that the table is no wider than a page.
    assert "metric" not in kept
    assert "metric throughput" in shown.caption
    assert [tuple(row) for row in csv.reader(StringIO(to_summary_csv(record)))] == [
        tuple(c.title for c in columns),
        *rows,
    ]
    markdown = [line for line in to_summary_markdown(record).splitlines() if line.startswith("|")]
    assert "result, kfps" in markdown[0]
    assert [tuple(line.strip("| ").split(" | ")) for line in markdown[2:]] == bare
    latex = [line for line in to_summary_latex(record).splitlines() if line.endswith(r"\\")]
    assert [
        tuple(line.removesuffix(r" \\").replace(r" $\times$ ", " x ").split(" & ")) for line in latex[1:]
    ] == bare


def test_a_row_has_version_hash_size_hosts_median_range_and_repetitions() -> None:
    record = both()
    row = dict(zip((c.title for c in summary_columns(record)), summary_rows(record)[4], strict=True))
    assert (row["IP version"], row["hash"], row["frame size"], row["hosts"], row["repetitions"]) == (
        "IPv6",
        "type1",
        "64",
        "16 x 16",
        "2",
    )
    assert row["minimum"].endswith(" kfps")
    assert row["minimum"] <= row["result"] <= row["maximum"]


def test_no_column_says_that_nothing_is_stated() -> None:
    """Readers need no column of it; the CSV has the same columns each time."""
    plain = curve("gateway-v4", "old", {1: 6e5, 16: 5e6})
    unstated = record_of(replace(found, point=replace(found.point, hash_type=None)) for found in plain)
    shown = folded_summary(unstated)
    assert shown is not None
    assert "hash" not in [column.title for column in shown.columns]
    assert "hash" not in shown.caption
    assert "not stated" not in to_summary_latex(unstated) + to_summary_markdown(unstated)
    assert to_summary_csv(unstated).count("not stated") == 2


def test_the_page_begins_with_the_share_of_invalid_trials() -> None:
    """A reader must know at once that the machine was busy, and what became of such trials."""
    assert "INVALID (" not in page_of(both()).split("</header>")[0]
    spoiled = throughput_record(
        point_of("old", 0, "gateway-v4", 16, repetitions=2),
        5e6,
        chance=random.Random(1),
        invalid_trials=range(1, 4),
    )
    head = page_of(record_of([spoiled])).split("</header>")[0]
    assert re.search(r"\d+ trials, 6 of them INVALID \(\d+ %\): spoiled by the tester or its machine", head)


def test_a_point_that_is_being_measured_is_no_point_without_a_number() -> None:
    first, second, third = curve("gateway-v4", "old", {1: 6e5, 16: 5e6, 64: 5e6})
    begun = replace(second, state=PointState.BEGUN, repetitions=())
    ended = replace(third, state=PointState.NO_NUMBER, repetitions=(), reason="no")
    for other, is_marked in ((begun, False), (ended, True)):
        record = record_of([first, other], finished_at=None)
        (picture,) = pictures_of(record, analyse(record)).by_section[Section.THROUGHPUT]
        assert ("no number" in draw_inline(picture)) == is_marked


def test_latex_and_markdown_obey_nothing_that_a_name_says() -> None:
    record = record_of(
        [replace(found, point=replace(found.point, suite=EVIL)) for found in both().points], name=EVIL
    )
    latex, markdown = to_summary_latex(record), to_summary_markdown(record)
    assert r"\input{" not in latex
    assert r"\textbackslash{}input\{/etc/passwd\}" in latex
    assert r"100\% \$x\$" in latex
    assert "\x1b" not in latex + markdown + to_summary_csv(record)
    assert r"a\|b" in markdown
    assert r"\<b\>" in markdown
    assert "<b>" not in markdown.replace(r"\<b\>", "")


@pytest.mark.parametrize("beginning", ["=", "+", "-", "@"])
def test_a_spreadsheet_runs_no_text_of_the_summary(beginning: str) -> None:
    record = record_of(
        [replace(found, point=replace(found.point, suite=f"{beginning}cmd")) for found in both().points[:1]]
    )
    assert to_summary_csv(record).splitlines()[1].startswith(f"'{beginning}cmd")


def test_the_page_begins_with_the_dut_and_results_with_their_ip_version() -> None:
    text = render_page(both(), analyse(both()))
    page = Page(text)
    assert_self_contained(page)
    head = Page(text[: text.index("<figure")] + "</main></body></html>").shown
    assert (
        "DUT: Intel Xeon E5-2667 v3; Intel X540-T2; Debian GNU/Linux 12; kernel 6.1.0; hashes addresses only"
        " (type 1)." in head
    )
    assert "IPv4: throughput" in head
    assert "IPv6: throughput" in head
    assert "64 x 64 addresses" in head
    assert 'class="version">IPv4<' in text
    assert 'class="version">IPv6<' in text


def test_a_hostile_or_empty_dut_still_gives_a_line() -> None:
    assert dut_line(both(testbeds={})) == "DUT: hashes addresses only (type 1)."
    for dut in (
        None,
        [1],
        "x",
        {"kind": "reference"},
        {"kind": ["<b>"], "kernel": {"a": [None]}, "nic": "n" * 9999},
    ):
        assert len(dut_line(both(testbeds={"bed": {"dut": dut}}))) < 600
    assert "kernel 6.1.0-18-amd64" in dut_line(both(testbeds={"bed": {"dut": {"kind": "reference"}}}))


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"dut": "linux namespace"}, "DUT: the kernel's router in a namespace, on this machine; AMD"),
        ({"dut": "virtual machine", "accelerator": "kvm"}, "DUT: a virtual machine, on this machine; AMD"),
        (
            {"dut": "virtual machine", "accelerator": "tcg"},
            "DUT: a virtual machine, on this machine, emulated without KVM; AMD",
        ),
        (
            {"dut": "linux namespace", "translator": "TAYGA"},
            "DUT: the kernel's router in a namespace, on this machine, which translates by TAYGA; AMD",
        ),
        ({"dut": "virtual machine", "translator": ["<b>"]}, "DUT: a virtual machine, on this machine; AMD"),
        ({"dut": ["<b>"]}, "DUT: AMD"),
        ([1], "DUT: AMD"),
        (None, "DUT: AMD"),
    ],
)
def test_the_dut_of_a_lab_is_named_as_part_of_this_host(own: Any, words: str) -> None:
    bed = {"dut": {"cpu_model": "AMD EPYC"}, "own_dut": own}
    assert dut_line(both(testbeds={"lab": bed})).startswith(words)


def test_a_section_whose_only_picture_is_the_first_of_the_page_is_left_out() -> None:
    pictures = pictures_of(both(), analyse(both()))
    assert len(pictures.by_section[Section.THROUGHPUT]) == 1
    anchors = [section.anchor for section in sections_of(both(), pictures)]
    assert anchors == ["over-time"]


def test_ipv4_and_ipv6_are_in_one_picture() -> None:
    (picture,) = pictures_of(both(), analyse(both())).by_section[Section.THROUGHPUT]
    assert picture.title == "Throughput over the number of addresses: UDP over IPv4 and IPv6, 64 octets"
    drawn = draw_inline(picture)
    assert "old, IPv4" in drawn
    assert "new, IPv6" in drawn


def test_ipv4_and_ipv6_are_in_one_picture_at_the_smallest_frames_of_each() -> None:
    """64 and 84 octets are the defaults; the label has the size, and no theoretical limit is named, since
    there are two."""
    record = both()
    points = [
        replace(found, point=replace(found.point, frame_size=84)) if "v6" in found.point.plan else found
        for found in record.points
    ]
    record = record_of(points)
    (picture,) = pictures_of(record, analyse(record)).by_section[Section.THROUGHPUT]
    assert "UDP over IPv4 and IPv6, 64 octets and 84 octets" in picture.title
    assert "new, IPv6, 84 octets" in draw_inline(picture)
    assert "theoretical" not in picture.caption


def test_no_line_joins_a_lower_bound() -> None:
    """Its place is empty in the line, and an arrow stands there."""
    points = tuple(DrawnPoint(x=float(x), values=(1e6,), is_at_least=x == 2) for x in (1, 2, 4))
    line = DrawnCurve(label="a", points=points)
    values = with_gaps(median_places(line, 1e6), is_log=True)[1]
    assert [value == value for value in values] == [True, False, True]
    picture = addresses_picture("p", "t", [line])
    assert "at least: a lower bound" in draw_inline(picture)
    assert "Arrow: a lower bound" in picture.caption


def test_no_line_joins_points_between_which_nothing_is_known() -> None:
    """A straight line from 1 address to 65,534 looks like a series that was measured."""
    far = DrawnCurve(label="a", points=tuple(DrawnPoint(x=x, values=(1e6,)) for x in (1.0, 16.0, 65534.0)))
    values = with_gaps(median_places(far, 1e6), is_log=True)[1]
    assert [value == value for value in values] == [True, True, False, True]
    assert len(with_gaps(median_places(far, 1e6), is_log=False)[1]) == 3
    assert "not joined" in addresses_picture("p", "t", [far]).caption


def test_the_highest_arrow_ends_below_the_title_of_the_axis() -> None:
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    points = tuple(DrawnPoint(x=float(x), values=(1e6,), is_at_least=True) for x in (1, 2, 4))
    picture = addresses_picture("p", "t", [DrawnCurve(label="a", points=points)])
    picture.draw(axes, WIDE)
    assert axes.get_ylim()[1] >= 1.15


def test_curves_at_the_same_places_are_drawn_beside_each_other() -> None:
    curves = [
        DrawnCurve(label=label, points=(DrawnPoint(x=1, values=(1e6,)), DrawnPoint(x=2, values=(1e6,))))
        for label in "ab"
    ]
    together, alone = addresses_picture("p", "t", curves), addresses_picture("p", "t", curves[:1])
    assert "drawn slightly apart" in together.caption
    assert "apart" not in alone.caption


def test_loss_over_time_names_point_trial_load_and_direction() -> None:
    (picture,) = pictures_of(both(), analyse(both())).histories
    for version in ("IPv4", "IPv6"):
        place = f"{version}, 64 x 64 addresses, 64 octets, type1, "
        named = re.escape(place) + r"repetition \d, trial \d+; [\d.]+ [kM]fps, (\w+): [\d,]+ frames"
        assert re.findall(named, picture.alt) == ["forward", "reverse"]


def test_words_of_the_kernel_are_shown_as_people_write_them() -> None:
    facts, _ = host_facts(both(host={**HOST, "smt": "notsupported"}))
    assert ("hyper-threading", "not supported") in facts


def test_a_campaign_without_a_result_has_no_headline() -> None:
    assert headline_figures(record_of([])) == []
    assert folded_summary(record_of([])) is None


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("gateway-v4", "IPv4"),
        ("nets_v6_direct", "IPv6"),
        ("gateway-v4+gateway-v6", "IPv4 and IPv6"),
        ("siit", "IPv6/IPv4"),
        ("siit-eam", "IPv6/IPv4"),
        ("siit_eam", "IPv6/IPv4"),
        ("siit+gateway-v6", "IPv6/IPv4 and IPv6"),
        ("nat44", "IPv4"),
        ("nat66", "IPv6"),
        ("nat64", "IPv6/IPv4"),
        ("of-another-program", "IP"),
        ("of-another-program-v6", "IPv6"),
    ],
)
def test_the_ip_version_of_a_plan_in_words(plan: str, words: str) -> None:
    assert version_of_plan(plan) == words

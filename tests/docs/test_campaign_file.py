# SPDX-License-Identifier: Apache-2.0
"""The campaign file's page has every key, and its examples and presets are those of the code."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evenhand.procedure.registry import PROCEDURES
from evenhand.reference import DEFAULT_QUEUE_FRAMES
from evenhand.run.campaign.outline import describe
from evenhand.spec.file import (
    CampaignFile,
    DutHashing,
    Hooks,
    Published,
    Reference,
    make_campaign,
    read_campaign,
)
from evenhand.spec.points import expand
from evenhand.spec.presets import preset_names
from evenhand.spec.request import point_defaults
from tests.docs.documents import ROOT, Block, blocks, keys, name_of, table_rows

SUITE = type(make_campaign({"name": "x", "suite": [{"name": "a"}]}, where="x").suite[0])
PAGE = "docs/reference/campaign-file.md"
TABLES: dict[str, type[BaseModel]] = {
    "Top level": CampaignFile,
    "[[suite]]": SUITE,
    "[hooks] and [suite.hooks]": Hooks,
    "[reference]": Reference,
    "[dut-hashing]": DutHashing,
    "[[published]]": Published,
}
SAME_FOR_ALL = (
    "mix",
    "host-mode",
    "network-mode",
    "fixed-source",
    "fixed-source-network",
    "common-network",
    "source-ports",
    "destination-ports",
    "direction",
)
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.toml") if not path.name.startswith("testbed-"))


def rows_of_options() -> list[tuple[set[str], str]]:
    """The options of a suite, and the procedures that have them."""
    return [(set(row[0].split(", ")), row[1]) for row in table_rows(PAGE, "key")]


def test_the_page_lists_every_key_and_no_other() -> None:
    options = {key for names, _ in rows_of_options() for key in names}
    listed = keys(PAGE)
    for heading, table in TABLES.items():
        shown = {key.name: key for key in listed if key.heading == heading}
        fields = {field.alias: field for field in table.model_fields.values()}
        assert set(shown) | (options if table is SUITE else set()) == set(fields), heading
        for name, key in shown.items():
            assert key.is_required == fields[name].is_required(), name
            default = fields[name].default
            if isinstance(default, (str, bool)) and default:
                assert key.default is not None, name
                assert key.default.split(":")[0] in (str(default), str(default).lower()), name
    (queue,) = (key for key in listed if key.name == "queue-frames")
    assert queue.default == str(DEFAULT_QUEUE_FRAMES)


def test_the_page_tells_which_options_a_procedure_has() -> None:
    for procedure in PROCEDURES:
        names = {
            name
            for keys_of_row, of in rows_of_options()
            if of.startswith("all") or procedure in of.split(", ")
            for name in keys_of_row
        }
        assert names == set(point_defaults(PROCEDURES[procedure])) - {"repetitions"} | set(SAME_FOR_ALL), (
            procedure
        )


def test_the_page_lists_every_preset_with_its_points() -> None:
    """SEED-64."""
    shown = {row[0]: int(row[1]) for row in table_rows(PAGE, "preset")}
    assert shown == {
        name: len(expand(make_campaign({"preset": name}, where=name)).points) for name in preset_names()
    }


@pytest.mark.parametrize("block", [block for block in blocks("toml") if "[[suite]]" in block.text], ids=str)
def test_campaign_in_the_page_is_accepted(block: Block) -> None:
    assert expand(make_campaign(tomllib.loads(block.text), where=str(block))).points


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_example_campaign_is_accepted(path: Path) -> None:
    plan = expand(read_campaign(path))
    assert plan.testbed == "reference" or Path(str(plan.testbed)).exists()


def outline(name: str) -> Any:
    return describe(expand(read_campaign(ROOT / "examples" / name)))


def test_the_draft_example_is_the_drafts_series() -> None:
    """SEED-65, SEED-68, SEED-69, SEED-72."""
    rows = outline("draft-appendix-a.toml").rows
    assert len(rows) == 40
    assert {row.point.repetitions for row in rows} == {10}
    assert len({row.point.hosts for row in rows if row.point.suite == "IPv4 direct, type 1"}) == 17


def test_the_quick_example_is_quick_and_has_both_ip_versions() -> None:
    found = outline("campaign-quick.toml")
    assert found.expected.most_s < 110
    assert {row.point.plan for row in found.rows} == {"gateway-v4", "gateway-v6"}
    assert found.notes == ()

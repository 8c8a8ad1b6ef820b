# SPDX-License-Identifier: Apache-2.0
"""Numbers, names and examples in the documents are those of the code."""

from __future__ import annotations

import importlib.util
import json
import re
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import evenhand
from evenhand import host, testbed
from evenhand.base.units import parse_duration, parse_ratio
from evenhand.cli import demo_linux, demo_parts
from evenhand.cli.demo_parts import read_demo
from evenhand.procedure import maximum
from evenhand.run import run_file
from evenhand.search import ThroughputGoal
from evenhand.search.ceiling import DEFAULT_PRECISION
from evenhand.spec.request import read_point
from evenhand.spec.worker_hosts import read_workers
from evenhand.testbed.drivers import DRIVERS
from evenhand.testbed.resources import ALLOWED, INSTEAD
from evenhand.testbed.tunnel import Tunnel
from evenhand.trial import USUAL_OVERDUE_AFTER_US, Limits, Waits
from tests.docs.documents import DOCUMENTS, ROOT, Block, blocks, keys, name_of, printed, read, table_rows
from tests.test_rooms import ROOMS

Run = Callable[[str], subprocess.CompletedProcess[str]]


def test_command_line_page_is_up_to_date() -> None:
    """The page is made from the help texts: `make docs` writes it."""
    generator = _load(ROOT / "docs" / "reference" / "generate_cli.py")
    assert generator.PAGE.read_text(encoding="utf-8") == generator.render()


def test_python_page_is_up_to_date() -> None:
    """The page is made from the docstrings: `make docs` writes it. Whatever can be imported is on it."""
    generator = _load(ROOT / "docs" / "reference" / "generate_python.py")
    page = generator.render()
    assert generator.PAGE.read_text(encoding="utf-8") == page
    listed = {name for _, names in generator.SECTIONS for name in names}
    mentioned = {name for name in evenhand.__all__ if re.search(rf"\b{name}\b", page)}
    assert set(evenhand.__all__) - listed - mentioned == {"__version__"}


def test_how_to_shows_the_script_as_it_is() -> None:
    shown = blocks("python", document="docs/how-to/measure-from-python.md")[0]
    assert shown.text in (ROOT / "examples" / "throughput.py").read_text()


OF_PLANS = (
    "docs/how-to/measure-classes.md",
    "docs/how-to/use-your-own-network.md",
    "docs/reference/plan-file.md",
)
"""Their TOML is of plan files (tests/docs/test_plan_file.py)."""
PARTS = {"docs/how-to/test-a-tunnel.md": "testbed-tunnel"}
"""Pages whose TOML is parts of an example, with other values."""


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("testbed-*.toml")), ids=name_of)
def test_example_testbed_is_accepted(path: Path) -> None:
    """SEED-80: also that it confirms an isolated test environment."""
    assert testbed.read_testbed(path).isolated_test_environment


@pytest.mark.parametrize(
    "block",
    [
        block
        for block in blocks("toml")
        if not {"[[suite]]", "[[worker]]"} & set(block.text.split()) and block.document not in OF_PLANS
    ],
    ids=str,
)
def test_testbed_in_a_document_is_accepted(block: Block) -> None:
    found = tomllib.loads(block.text)
    if block.document in PARTS:
        whole = tomllib.loads((ROOT / "examples" / f"{PARTS[block.document]}.toml").read_text())
        found = whole | {key: whole[key] | value for key, value in found.items()}
    testbed.make_testbed(found, where=str(block))


def test_workers_file_in_the_how_to_is_accepted(tmp_path: Path) -> None:
    (block,) = (block for block in blocks("toml") if "[[worker]]" in block.text)
    (tmp_path / "workers.toml").write_text(block.text)
    assert len(read_workers(tmp_path / "workers.toml")) == 2


def test_how_to_shows_the_example_as_it_is() -> None:
    pages = {"tutorial/first-number": "testbed-nic", "how-to/test-a-router": "testbed-af-packet"}
    for page, name in pages.items():
        (block,) = blocks("toml", document=f"docs/{page}.md")
        assert testbed.make_testbed(tomllib.loads(block.text), where=page) == testbed.read_testbed(
            ROOT / "examples" / f"{name}.toml"
        )


def test_testbed_page_lists_every_key() -> None:
    of_tables = {
        "left",
        "right",
        "tester",
        "dut",
        "facts",
        "limits",
        "engine",
    }  # the first two are keys of [dut] as well
    rows = [key for key in keys("docs/reference/testbed-file.md") if key.name not in of_tables]
    tables = (
        testbed.Testbed,
        testbed.TestbedPort,
        Tunnel,
        testbed.Tester,
        testbed.TestbedDut,
        testbed.DutFacts,
        testbed.TestbedLimits,
    )
    fields = [(name, field) for table in tables for name, field in table.model_fields.items()]
    fields += [
        (name, field)
        for name, field in testbed.TestbedEngine.model_fields.items()
        if name not in testbed.Tester.model_fields
    ]
    assert sorted(key.name for key in rows) == sorted(name for name, _ in fields if name not in of_tables)
    for key in rows:
        assert key.is_required in {field.is_required() for other, field in fields if other == key.name}
    defaults = {key.name: key.default for key in rows}
    assert defaults["memory"] == f'what the buffers take, with hugepages "{testbed.LEAST_MEMORY_MB}MB"'
    assert defaults["receive_queues"] == str(testbed.Tester.model_fields["receive_queues"].default)
    assert defaults["hugepages"] == str(testbed.Tester.model_fields["hugepages"].default).lower()


def test_testbed_page_lists_every_driver_key_and_option() -> None:
    """SEED-80: what is allowed, no more and no less."""
    page = "docs/reference/testbed-file.md"
    shown = {row[0]: set(row[2].replace(",", "").split()) for row in table_rows(page, "driver")}
    assert {"pci" if name == "PCI address" else name: keys for name, keys in shown.items()} == {
        name: set(driver.keys) for name, driver in DRIVERS.items()
    }
    assert {
        option for row in table_rows(page, "option") for option in row[0].replace(",", "").split()
    } == set(ALLOWED)
    for row in table_rows(page, "instead of"):
        for option in row[0].replace(",", "").split():
            assert row[1].split()[0] in INSTEAD[option][1], option
    assert len(DRIVERS) == 10
    assert "[ten drivers]" in read("docs/explanation/isolation.md")


def test_lists_of_keys_are_up_to_date() -> None:
    """D2: what each key of a result or a configuration is, says the schema that both halves keep to; `make
    docs` writes it into the pages."""
    generator = _load(ROOT / "docs" / "reference" / "generate_keys.py")
    pages = generator.pages()
    assert {page.stem for page in pages} == {"plan-file", "reference-router", "result", "trend"}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert generator.render(text) == text, page


def test_a_key_without_words_in_its_schema_is_an_error() -> None:
    generator = _load(ROOT / "docs" / "reference" / "generate_keys.py")
    for part in ("trial", "direction_result", "port_counters", "delays"):
        properties = json.loads(read("contract/reply.schema.json"))["$defs"][part]["properties"]
        text = generator.render(f"<!-- keys contract/reply.schema.json #/$defs/{part} -->\n<!-- /keys -->\n")
        assert re.findall(r"^- `(\w+)`", text, re.MULTILINE) == [*properties]
    with pytest.raises(SystemExit, match="has no description"):
        generator.render("<!-- keys contract/reply.schema.json #/$defs/about -->\n<!-- /keys -->\n")


def test_result_page_has_every_code_of_a_note() -> None:
    notes = json.loads(read("contract/reply.schema.json"))["$defs"]["trial"]["properties"]["notes"]
    codes = {
        code
        for row in table_rows("docs/reference/result.md", "code of a note")
        for code in row[0].split(", ")
    }
    assert codes == set(notes["items"]["properties"]["code"]["enum"])


def test_invalid_page_lists_every_reason_code() -> None:
    """R2544-39: whoever gets a code finds what to do."""
    reasons = json.loads(read("contract/reply.schema.json"))["$defs"]["trial"]["properties"]["reasons"]
    codes = set(reasons["items"]["properties"]["code"]["enum"])
    assert {row[0] for row in table_rows("docs/how-to/read-an-invalid-trial.md", "code")} == codes


def test_limits_are_those_of_the_code() -> None:
    """R2544-39: one set of defaults in the contract, in Python and in the documents."""
    requested = json.loads(read("contract/request.schema.json"))["$defs"]["trial"]["properties"]["limits"][
        "properties"
    ]
    shown = {row[0]: float(row[1]) for row in table_rows("docs/reference/result.md", "limit")}
    assert set(shown) == set(requested)
    assert shown == {**Limits().to_contract(), "overdue_after_us": USUAL_OVERDUE_AFTER_US}


def test_validity_page_quotes_the_limits() -> None:
    limits, text = Limits(), read("docs/explanation/validity.md")
    rows = {row[0]: row[1] for row in table_rows("docs/explanation/validity.md", "limit")}
    assert rows["offered load"] == f"{limits.offered_tolerance * 100:g} %"
    assert rows["overdue after"] == f"{USUAL_OVERDUE_AFTER_US:g} us"
    assert rows["share of overdue frames"] == f"{limits.overdue_tolerance * 100:g} %"
    assert rows["latest frame"] == f"{limits.longest_overdue_us / 1000:g} ms"
    assert rows["clock"] == f"{limits.clock_ppm:g} ppm"
    in_lab = read_point(read_demo(demo_linux.PRESET).points[0])
    assert f"loss ratio {in_lab.goal.loss_ratio * 100:g} % instead of 0" in text
    assert (
        f"overdue after {demo_linux.OVERDUE_AFTER_US:g} us instead of {USUAL_OVERDUE_AFTER_US:g} us" in text
    )
    demo = read_demo(demo_parts.PRESET)
    assert demo.reference is not None
    justified = demo.reference.dut().justified_limits()
    assert (
        f"overdue after {parse_duration(justified['overdue_after']) * 1000:.0f} ms instead of"
        f" {USUAL_OVERDUE_AFTER_US:g} us" in text
    )
    assert f"Both allow {justified['overdue_tolerance'].replace('%', ' %')} of overdue frames" in text
    assert in_lab.conditions["limits"].overdue_tolerance == parse_ratio(justified["overdue_tolerance"])
    assert f"a loss of up to {demo_parts.PLAIN_LOSS_RATIO * 100:g} % counts only if a repetition" in text
    offered_tolerance = read_point(demo.points[0]).conditions["limits"].offered_tolerance
    assert (
        f"offered load within {offered_tolerance * 100:g} % instead of"
        f" {limits.offered_tolerance * 100:g} %" in text
    )


def test_check_page_quotes_the_limits_and_names_every_state() -> None:
    """R2544-39: a host is called weak by the same limits that make trials INVALID."""
    page, limits = "docs/how-to/check-a-host.md", Limits()
    text = " ".join(read(page).split())
    assert (
        f"for more than {limits.overdue_tolerance * 100:g} % of the time or for"
        f" {limits.longest_overdue_us / 1000:g} ms at once" in text
    )
    assert f"more than {limits.clock_ppm:g} ppm off CLOCK_MONOTONIC_RAW" in text
    assert f"doubles from {maximum.START_FPS / 1e6:g} Mfps" in text
    assert f"found to {DEFAULT_PRECISION * 100:g} %" in text
    assert [row[0] for row in table_rows(page, "state")] == list(host.State)
    assert [row[0] for row in table_rows(page, "part")] == [part.label for part in host.Part]


def test_streams_page_quotes_the_time_in_which_order_settles() -> None:
    """R2544-06: whoever reads a count of several queues must know what it leaves out."""
    (settles_us,) = re.findall(r"order_settles_us = (\d+);", read("engine/run/trial.cpp"))
    text = " ".join(read("docs/explanation/streams-and-queues.md").split())
    assert f"at least {settles_us} us later finds its own queue empty" in text
    assert f"| more than {3 * int(settles_us)} us | counted, if its queue has been empty" in text
    assert f"within {settles_us} us cannot be seen" in read("docs/how-to/use-several-cores.md")


def test_several_cores_page_says_where_each_cpu_goes() -> None:
    page = "docs/how-to/use-several-cores.md"
    (block,) = blocks("toml", document=page)
    tester = testbed.make_testbed(tomllib.loads(block.text), where=page).tester
    workers = {
        worker["cpu"]: worker for worker in testbed.lay_out_workers(tester.cpus, tester.receive_queues)
    }
    assert [workers[cpu]["senders"][0]["side"] for cpu in (2, 3, 4, 5)] == ["left", "left", "right", "right"]
    assert [workers[cpu]["receivers"][0]["side"] for cpu in (6, 7, 8, 9)] == [
        "left",
        "left",
        "right",
        "right",
    ]
    assert sum("senders" in worker for worker in testbed.lay_out_workers(tester.cpus)) == 2 * 3


def test_defaults_of_a_search_are_those_of_the_code() -> None:
    """R2544-18, R2544-20."""
    goal, waits, text = (
        ThroughputGoal(max_fps=1),
        Waits(),
        " ".join(read("docs/how-to/test-a-router.md").split()),
    )
    assert goal.loss_ratio == 0
    assert (
        f"waits of {waits.after_routing_s:g}, {waits.after_learning_s:g}, {waits.residual_s:g} and"
        f" {waits.restabilize_s:g} s" in text
    )
    assert f"a final trial of {goal.final_duration_s:g} s" in text
    assert f"({goal.precision * 100:g} % by default)" in " ".join(
        read("docs/tutorial/first-throughput.md").split()
    )


@pytest.mark.wire
@pytest.mark.parametrize(("plan", "column", "size"), [("gateway-v4", 0, 64), ("gateway-v6", 1, 84)])
def test_frame_page_has_the_offsets_of_a_real_frame(run: Run, plan: str, column: int, size: int) -> None:
    """R2544-31, R2544-33, R5180-10, R8219-08."""
    frame = json.loads(
        run(f"evenhand plan frames {plan} --count 1 --first 5 --frame-size {size + 4} --format jsonl").stdout
    )
    octets = bytes.fromhex(frame["octets"])
    rows = {row[2]: row for row in table_rows("docs/reference/frame.md", "IPv4")}

    def at(field: str) -> bytes:
        first, _, last = rows[field][column].partition("-")
        return octets[
            int(first) : int(last) + 1
            if last
            else None
            if rows[field][column].endswith("-")
            else int(first) + 1
        ]

    assert at("EtherType").hex() == ("0800", "86dd")[column]
    assert at("TTL; hop limit") == b"\x0a"
    assert int.from_bytes(at("source port")) == frame["source_port"]
    assert int.from_bytes(at("destination port")) == frame["destination_port"]
    assert at("pattern") == b"\x00\x01\x02\x03"
    assert len(at("source address")) == len(at("destination address")) == (4, 16)[column]
    assert len(at("IP header")) == (20, 40)[column]
    assert int.from_bytes(at("UDP length")) == 26 + 4
    tag = {row[1]: row[0] for row in table_rows("docs/reference/frame.md", "octet of the tag")}

    def in_tag(field: str) -> bytes:
        first, _, last = tag[field].partition("-")
        return at("tag")[int(first) : int(last or first) + 1]

    assert in_tag("magic") == b"\xe5\xe4\x01"
    assert int.from_bytes(in_tag("sequence")) == 5
    assert sum(len(in_tag(field)) for field in tag) == len(at("tag")) == 18


@pytest.mark.wire
def test_draw_by_hand_is_what_the_engine_draws(run: Run) -> None:
    """SEED-40, SEED-44, D3: a reader can recompute any frame."""
    script = "examples/draw_by_hand.py"
    shown = printed(script)
    ended = subprocess.run([sys.executable, ROOT / script], capture_output=True, text=True, check=True)
    assert ended.stdout == shown
    frames = [
        json.loads(line)
        for line in run(
            "evenhand plan frames gateway-v4 --seed 7 --count 3 --format jsonl"
        ).stdout.splitlines()
    ]
    drawn = [f"{f['source']} {f['source_port']} {f['destination']} {f['destination_port']}" for f in frames]
    assert drawn == shown.splitlines()


@pytest.mark.wire
def test_run_file_is_read_as_the_how_to_says(run: Run, tmp_path: Path) -> None:
    """The trial command, the Python program and the SQL of the how-to, one after the other."""
    page = "docs/how-to/keep-a-run.md"
    (trial,) = [
        line for line in blocks("sh", document=page)[0].text.splitlines() if line.startswith("evenhand trial")
    ]
    assert run(trial).returncode == 0
    (program,) = blocks("python", document=page)
    (tmp_path / "read.py").write_text(program.text)
    ended = run(f"{sys.executable} read.py")
    assert ended.returncode == 0, ended.stderr
    assert "trial gateway_v4 1 " in ended.stdout
    connection = sqlite3.connect(tmp_path / "cable.evenhand")
    queries = re.findall(r'sqlite3 -readonly \S+ "(.*)"', read(page))
    assert len(queries) == 2
    for query in queries:
        assert len(connection.execute(query).fetchall()) == 1
    for table, columns in ((row[0], row[1]) for row in table_rows(page, "table")):
        names = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}
        assert {re.sub(r" \(.*\)", "", part) for part in re.split(r", (?![^(]*\))", columns)} == names - {
            "id"
        }
    connection.close()
    assert run_file.VERSION == 1


def test_dependencies_page_names_every_dependency() -> None:
    """D14: none comes in without its reason and licence."""
    text = read("docs/developers/dependencies.md")
    project = tomllib.loads(read("pyproject.toml"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    packages = re.sub(r"#.*|^\[.*", "", read("tools/debian-packages.txt"), flags=re.MULTILINE)
    names = {re.split(r"[<>=~! ]", name)[0] for name in wanted} | set(packages.replace("|", " ").split()) - {
        "-"
    }
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_folder_map_is_complete_and_true() -> None:
    rows = {row[0].rstrip("/") for head in ("folder", "room") for row in table_rows("HACKING.md", head)}
    assert [name for name in sorted(rows) if not (ROOT / name).is_dir()] == []
    inner = [
        path
        for parent in ("engine", "python/evenhand", "python/evenhand/rig")
        for path in (ROOT / parent).iterdir()
        if path.is_dir()
    ]
    sources = [
        path for path in inner if any(path.glob("*.py")) or any(path.glob("*.cpp")) or any(path.glob("*.hpp"))
    ]
    assert [name_of(path) for path in sorted(sources) if name_of(path) not in rows] == []


def test_rooms_are_listed_in_the_order_that_their_imports_keep() -> None:
    rooms = [row[0].rstrip("/").removeprefix("python/evenhand/") for row in table_rows("HACKING.md", "room")]
    assert [room for room in rooms if "/" not in room] == [
        room for room in ROOMS if (ROOT / "python/evenhand" / room).is_dir()
    ]


def test_source_files_named_in_documents_exist() -> None:
    """Paths in backticks: from the root, or in HACKING.md from the half that they belong to."""
    missing = []
    for path in DOCUMENTS:
        for name in re.findall(
            r"`([\w./-]+/[\w.-]+\.(?:hpp|cpp|py|toml|jsonl|json|txt))`", path.read_text(encoding="utf-8")
        ):
            is_there = any(
                (ROOT / base / name).exists() for base in ("", "engine", "python/evenhand", path.parent)
            )
            # `cli/NAME.py` is where the reader's own file goes.
            if not is_there and "NAME" not in name:
                missing.append(f"{name_of(path)}: {name}")
    assert missing == []


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

# SPDX-License-Identifier: Apache-2.0
"""`evenhand predict`: the numbers of the model, options that reach it, pictures that can be opened."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.plan import gateway_v4, make_plan
from evenhand.predict import DeviceModel, predict, smallest_even_hosts
from tests.cli.running import Ended

Run = Callable[..., Ended]

ETHTOOL = f"""RX flow hash indirection table for eth0 with 4 RX ring(s):
    0:      0     1     2     3     0     1     2     3
    8:      3     2     1     0     3     2     1     0
RSS hash key:
{":".join(["be:ac:01:fa"] * 13)}
RSS hash function:
    toeplitz: on
"""


def test_it_says_what_the_model_says(evenhand: Run) -> None:
    """RSS-06, SEED-71."""
    ended = evenhand("predict", "gateway-v4", "--hosts", "1")
    assert ended.code == 0
    assert "2 of 16" in ended.out
    assert "12.5 %" in ended.out
    smallest = smallest_even_hosts(gateway_v4(), DeviceModel())
    assert f"Even from {smallest} hosts per side on" in ended.out
    assert "the limit is the addresses, not the device" in ended.out
    assert "the device itself is measured: 100 % of its plateau" in evenhand("predict", "gateway-v4").out


def test_a_nic_that_does_not_tell_its_hash_function_is_not_taken_for_toeplitz(
    evenhand: Run, tmp_path: Path
) -> None:
    """RSS-03: what calls itself exact asks; whoever gives the key says that it is Toeplitz."""
    table = tmp_path / "ethtool.txt"
    table.write_text(ETHTOOL.replace("    toeplitz: on", "    Operation not supported"))
    refused = evenhand("predict", "gateway-v4", "--table", str(table))
    assert refused.code == 2
    assert refused.error.code == "spec.hash-function-unknown"
    assert "Operation not supported" in refused.error.what
    assert evenhand("predict", "gateway-v6", "--table", str(table), "--key", "common").code == 0


def test_the_document_holds_exact_counts(evenhand: Run) -> None:
    """RSS-06: also beyond what a float holds."""
    document = evenhand(
        "predict", "gateway-v4", "--hash", "type2", "--elements", "36", "--rate", "1Mfps", "--json"
    ).json
    wanted = predict(gateway_v4(), DeviceModel(elements=36, hash_type="type2", rate_fps=1e6))
    assert document["counts"] == {direction: list(counts) for direction, counts in wanted.counts.items()}
    assert document["throughput_fps_per_direction"] == wanted.throughput_fps
    assert document["device"]["elements"] == 36
    assert document["series"] == []


def test_networks_and_a_fixed_source_shape_the_plan(evenhand: Run) -> None:
    """SEED-30, SEED-35: the plan that is predicted is the one that `throughput` would send with the same
    options."""
    plan = make_plan("nets_v4_single_host", networks=(4, 64), fixed_source=True)
    ended = evenhand("predict", "nets-v4-single-host", "--networks", "4,64", "--fixed-source", "--json")
    assert ended.json["counts"] == {
        direction: list(counts) for direction, counts in predict(plan, DeviceModel()).counts.items()
    }
    assert ended.json["networks"] == {"left": 4, "right": 64}
    shown = evenhand("predict", "nets-v4-single-host", "--networks", "4,64", "--fixed-source").out
    assert "forward 1 source x 64 destination addresses in 1 x 64 networks, reverse 1 source x 4" in shown


def test_a_series_doubles_and_shows_bars(evenhand: Run) -> None:
    """SEED-65."""
    line = ("predict", "gateway-v6", "--elements", "36", "--series")
    hosts = [point["hosts"]["left"] for point in evenhand(*line, "--json").json["series"]]
    assert hosts == [2**n for n in range(17)]
    rows = [row for row in evenhand(*line).out.splitlines() if "█" in row]
    assert [row.split()[0] for row in rows] == [f"{n:,}" for n in hosts]
    assert rows[0].count("█") < rows[-1].count("█")


def test_directions_are_chosen(evenhand: Run) -> None:
    """R2544-15: one direction has all elements for itself."""
    both = evenhand("predict", "gateway-v4", "--rate", "1Mfps", "--json").json
    for direction in ("forward", "reverse"):
        one = evenhand("predict", "gateway-v4", "--rate", "1Mfps", "--direction", direction, "--json").json
        assert one["directions"] == [direction]
        assert one["plateau_fps_per_direction"] == 2 * both["plateau_fps_per_direction"] == 16e6


def test_the_table_comes_as_a_list_or_from_a_file_or_from_ethtool(evenhand: Run, tmp_path: Path) -> None:
    """RSS-03, RSS-04: drivers choose their keys at random, so a table without its key would predict another
    device."""
    table = [0, 1, 2, 3, 0, 1, 2, 3, 3, 2, 1, 0, 3, 2, 1, 0]
    (tmp_path / "ethtool.txt").write_text(ETHTOOL)
    (tmp_path / "plain.txt").write_text("\n".join(map(str, table)))
    for text in (",".join(map(str, table)), tmp_path / "ethtool.txt", tmp_path / "plain.txt"):
        device = evenhand("predict", "gateway-v4", "--table", text, "--json").json["device"]
        assert (device["table"], device["elements"]) == (table, 4)
    from_ethtool = ("predict", "gateway-v4", "--table", tmp_path / "ethtool.txt", "--json")
    assert evenhand(*from_ethtool).json["device"]["key"] == "beac01fa" * 13
    assert evenhand(*from_ethtool, "--key", "01" * 40).json["device"]["key"] == "01" * 40
    sized = evenhand("predict", "gateway-v4", "--elements", "3", "--table-size", "8", "--json").json["device"]
    assert sized["table"] == [0, 1, 2, 0, 1, 2, 0, 1]


def test_key_and_symmetry_reach_the_model(evenhand: Run) -> None:
    """RSS-03, RSS-05."""
    key = ":".join(["6d:5a"] * 26)
    device = evenhand("predict", "gateway-v6", "--key", key, "--symmetric", "--json").json["device"]
    assert device["key"] == "6d5a" * 26
    assert device["symmetric"] is True


@pytest.mark.parametrize(
    ("options", "code", "where"),
    [
        ("--elements 0", "predict.out-of-range", "--elements"),
        ("--elements 5000", "predict.out-of-range", "--elements"),
        ("--hash type3", "base.not-one-of", "--hash"),
        ("--key 6d5a", "predict.key-too-short", "--key"),
        ("--key xyz", "spec.not-a-hash-key", "--key"),
        ("--table-size 100", "spec.table-size", "--table-size"),
        ("--table-size 0", "spec.table-size", "--table-size"),
        ("--table 0,1,2", "predict.table-size", "--table 0,1,2"),
        ("--table 0,1 --table-size 2", "spec.options-exclude-each-other", "--table, --table-size"),
        ("--table 0,9 --elements 4", "spec.table-contradicts-elements", "--elements 4, --table 0,9"),
        ("--table nowhere.txt", "spec.not-a-hash-table", "--table nowhere.txt"),
        ("--table ,", "spec.not-a-hash-table", "--table"),
        ("--rate fast", "base.not-a-quantity", "--rate"),
        ("--direction up", "base.not-one-of", "--direction"),
        ("--picture series.bmp", "report.not-a-picture-format", "--picture"),
        ("--hosts 65535", "plan.count-out-of-range", "--hosts"),
        ("--networks 2", "plan.one-network-only", "--networks"),
        ("--networks two", "spec.not-a-count", "--networks"),
    ],
)
def test_what_cannot_be_is_refused(evenhand: Run, options: str, code: str, where: str) -> None:
    ended = evenhand("predict", "gateway-v4", *options.split())
    assert ended.code == 2
    assert ended.out == ""
    assert (ended.error.code, ended.error.where) == (code, where)


@pytest.mark.parametrize("name", ["series.svg", "series.png"])
def test_a_picture_is_drawn(evenhand: Run, tmp_path: Path, name: str) -> None:
    """SEED-65, SEED-66: with the plateau, where the load becomes even, and the device."""
    ended = evenhand("predict", "gateway-v4", "--elements", "36", "--picture", tmp_path / name)
    assert ended.code == 0
    content = (tmp_path / name).read_bytes()
    if name.endswith(".png"):
        assert content.startswith(b"\x89PNG")
    else:
        # Text stays text: it can be searched, and a page chooses the font.
        for text in (
            b"plateau: equal load on all elements",
            b"even from",
            b"36 elements",
            b"hosts per side",
            b"64k",
            b"best that the table allows",
        ):
            assert text in content


def test_a_picture_that_cannot_be_written_is_3(evenhand: Run, tmp_path: Path) -> None:
    assert evenhand("predict", "gateway-v4", "--picture", tmp_path / "no-folder" / "series.svg").code == 3


def test_only_a_picture_loads_the_drawing_library() -> None:
    """It takes longer than all predictions together."""
    program = (
        "import sys; from evenhand.cli.main import main; main(['predict', 'gateway-v4']);"
        " sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60).returncode == 0


def test_openbsds_key_has_a_name(evenhand: Run) -> None:
    """RSS-03: 0x6d5a of its sources, or the seed that the reader's own system has drawn."""
    assert (
        evenhand("predict", "gateway-v4", "--key", "openbsd", "--json").json["device"]["key"] == "6d5a" * 20
    )
    ended = evenhand("predict", "gateway-v6", "--key", "openbsd:beef", "--hosts", "1")
    assert "key beef repeated" in ended.out
    assert "1 of 16" in ended.out
    for wrong in ("openbsd:", "openbsd:6d5", "openbsd:6d5a6d5a", "openbsd:none"):
        refused = evenhand("predict", "gateway-v4", "--key", wrong)
        assert refused.code == 2
        assert (refused.error.code, refused.error.where) == ("spec.not-16-bits", "--key openbsd:")


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
@pytest.mark.parametrize(
    ("elements", "table", "named", "next_step"),
    [
        ("8", "0,1,2,3", "8 elements .* up to 3$", "Omit --elements, or give 4;"),
        ("2", "0,1,2,3", "2 elements .* up to 3$", "or give 4;"),
        ("2", "0,0", "2 elements .* up to 0$", "or give 1;"),
        ("3", "rings", "3 elements .* up to 1, .* 8 queues$", "or give 2 or 8;"),
    ],
)
def test_elements_that_a_table_contradicts_are_refused(
    evenhand: Run, tmp_path: Path, plan: str, elements: str, table: str, named: str, next_step: str
) -> None:
    """RSS-04: what was predicted was of neither device, and the sentence below it spoke of entries that the
    table does not have."""
    rings = tmp_path / "nic.txt"
    rings.write_text(
        "RX flow hash indirection table for eth0 with 8 RX ring(s):\n    0:      0     1     0     1\n"
    )
    given = ("--table", rings if table == "rings" else table, "--key", "common")
    ended = evenhand("predict", plan, "--elements", elements, *given, "--json")
    assert ended.code == 2
    assert ended.json["error"]["id"] == "spec.table-contradicts-elements"
    assert re.match(named, ended.json["error"]["what"])
    assert next_step in ended.json["error"]["next"]


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_elements_that_a_table_agrees_with_are_taken(evenhand: Run, tmp_path: Path, plan: str) -> None:
    rings = tmp_path / "nic.txt"
    rings.write_text(
        "RX flow hash indirection table for eth0 with 8 RX ring(s):\n    0:      0     1     0     1\n"
    )
    line = ("predict", plan, "--key", "common")
    assert evenhand(*line, "--elements", "4", "--table", "0,1,2,3", "--json").json["device"]["elements"] == 4
    assert evenhand(*line, "--table", rings, "--json").json["device"]["elements"] == 2
    ended = evenhand(*line, "--elements", "8", "--table", rings)
    assert "busiest element at most 5 % above 4 times the mean, the best that this table allows." in ended.out
    assert "the best that this table allows" in evenhand(*line, "--table", "0,0,0,1").out
    assert "the best that 4 entries allow 3 elements" in evenhand(*line, "--table", "0,1,2,0").out

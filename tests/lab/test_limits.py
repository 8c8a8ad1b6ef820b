# SPDX-License-Identifier: Apache-2.0
"""Limits of the kernel's neighbour tables go up for labs with hosts on the link, and come back, however the
labs end."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from pathlib import Path

import pytest

from evenhand.base import locks
from evenhand.cli.main import main
from evenhand.lab import lab_down, lab_status, lab_up, limits, linux_lab, state
from evenhand.plan import make_plan
from tests.errors import raises
from tests.lab.lab_holder import holder

KERNELS_OWN = {"gc_thresh1": 128, "gc_thresh2": 512, "gc_thresh3": 1024}
FULL = make_plan("direct_v4_net16")
ENTRIES = 2 * 65533
GUARD_S = 30


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /proc/sys of files, and a /run of its own."""
    monkeypatch.setattr(limits, "SYSCTLS", tmp_path / "sys")
    monkeypatch.setattr(limits, "LIMITS_FILE", tmp_path / "run" / "neighbor-limits.json")
    monkeypatch.setattr(state, "STATE_DIRECTORY", tmp_path / "run" / "labs")
    for version in (4, 6):
        folder = tmp_path / "sys" / "net" / f"ipv{version}" / "neigh" / "default"
        folder.mkdir(parents=True)
        for name, value in KERNELS_OWN.items():
            (folder / name).write_text(f"{value}\n")
    for lab in ("one", "two"):
        state.write_record(lab, {"version": 1})
    return tmp_path / "sys"


def raised(by: int) -> dict[str, int]:
    return {name: value + by for name, value in KERNELS_OWN.items()}


def test_limits_go_up_by_what_the_lab_needs_and_come_back(kernel: Path) -> None:
    """SEED-23: in the family of the plan only, and on top of what others may have there."""
    limits.make_room("one", 4, ENTRIES)
    assert limits.read_limits(4) == raised(ENTRIES)
    assert limits.read_limits(6) == KERNELS_OWN
    limits.give_back("one")
    assert limits.read_limits(4) == KERNELS_OWN
    assert not limits.LIMITS_FILE.exists()
    limits.give_back("one")


def test_what_is_raised_is_told_with_the_values_before_and_now(
    kernel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also after a run was killed: the lab is not up, and the limits are."""
    limits.make_room("one", 4, 1_000)
    (kernel / "net/ipv4/neigh/default/gc_thresh1").write_text("128")  # somebody has put one back
    expected = [
        {"name": "net.ipv4.neigh.default.gc_thresh2", "before": 512, "now": 1_512},
        {"name": "net.ipv4.neigh.default.gc_thresh3", "before": 1_024, "now": 2_024},
    ]
    assert main(["lab", "status", "linux", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "command": "lab",
        "lab": "linux",
        "is_up": False,
        "changed_outside": expected,
        "error": None,
    }
    assert main(["lab", "status", "linux"]) == 0
    assert "  net.ipv4.neigh.default.gc_thresh3  before 1,024, now 2,024\n" in capsys.readouterr().out
    limits.give_back("one")
    assert limits.raised_limits() == []
    assert main(["lab", "status", "linux"]) == 0
    assert capsys.readouterr().out == "The lab linux is not up.\n"


def test_labs_share_the_table_and_the_last_one_puts_everything_back(kernel: Path) -> None:
    limits.make_room("one", 4, 1_000)
    limits.make_room("two", 4, 2_000)
    assert limits.read_limits(4) == raised(3_000)
    limits.give_back("one")
    assert limits.read_limits(4) == raised(2_000)
    limits.make_room("one", 6, 500)
    limits.give_back("two")
    assert (limits.read_limits(4), limits.read_limits(6)) == (KERNELS_OWN, raised(500))
    limits.give_back("one")
    assert limits.read_limits(6) == KERNELS_OWN


def test_what_a_killed_run_leaves_is_put_back_by_the_next_of_its_name(kernel: Path) -> None:
    """Killed before, between and after writing: the file is there before the first limit is raised."""
    limits.make_room("one", 4, 1_000)
    path = kernel / "net/ipv4/neigh/default/gc_thresh1"
    path.write_text("128")  # as if killed between gc_thresh2 and gc_thresh1
    limits.give_back("one")
    assert limits.read_limits(4) == KERNELS_OWN


def test_a_lab_without_a_record_needs_nothing_any_more(kernel: Path) -> None:
    """Somebody emptied /run/evenhand/labs: the next lab does not add to what nobody will give back."""
    limits.make_room("one", 4, 1_000)
    state.remove_record("one")
    limits.make_room("two", 4, 2_000)
    assert limits.read_limits(4) == raised(2_000)
    limits.give_back("two")
    assert limits.read_limits(4) == KERNELS_OWN


def test_the_same_lab_again_does_not_add_up(kernel: Path) -> None:
    for _ in range(2):
        limits.make_room("one", 6, 1_000)
    assert limits.read_limits(6) == raised(1_000)


def test_few_entries_need_no_room_and_very_many_get_a_million(kernel: Path) -> None:
    """Gateway plans touch nothing of the host; nets_v6_direct in full would take 16 GB."""
    limits.make_room("one", 4, 2)
    assert not limits.LIMITS_FILE.exists()
    limits.make_room("one", 6, 2 * 256 * 65536)
    assert limits.read_limits(6) == raised(1_048_576)


@pytest.mark.parametrize(
    ("trouble", "code"), [("not there", "rig.limits-not-visible"), ("not writable", "rig.kernel-refuses")]
)
def test_limits_that_cannot_be_raised_are_a_host_error(
    kernel: Path, trouble: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are missing in every namespace but the initial one, and read-only in many containers."""
    path = kernel / "net/ipv4/neigh/default/gc_thresh3"
    if trouble == "not there":
        path.unlink()
    else:
        write = Path.write_text

        def refuse(self: Path, *arguments: object, **options: object) -> int:
            if self == path:
                raise PermissionError(30, "Read-only file system")
            return write(self, *arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(Path, "write_text", refuse)
    with raises(code) as refusal:
        limits.make_room("one", 4, ENTRIES)
    assert refusal.value.exit_code == 3
    assert "gc_thresh3" in str(refusal.value)
    assert refusal.value.next_step
    limits.give_back("one")
    assert not limits.LIMITS_FILE.exists()


def test_a_user_who_locks_the_folder_keeps_no_lab_from_its_room(kernel: Path) -> None:
    """Everybody can open it, and what can be opened can be locked: `lab up` waited for ever."""
    folder = os.open(limits.LIMITS_FILE.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        limits.make_room("one", 4, ENTRIES)
        assert limits.read_limits(4) == raised(ENTRIES)
        limits.give_back("one")
    finally:
        os.close(folder)
    assert limits.read_limits(4) == KERNELS_OWN


def test_who_does_not_let_go_of_the_limits_is_named(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOCKED_S", 0.1)
    with (
        locks.lock_file(limits.LIMITS_FILE.with_suffix(".lock")),
        raises("rig.limits-in-use", match=f"by process {os.getpid()}, which has not ended"),
    ):
        limits.make_room("one", 6, ENTRIES)
    assert limits.read_limits(6) == KERNELS_OWN
    limits.make_room("one", 6, ENTRIES)
    assert limits.read_limits(6) == raised(ENTRIES)


@pytest.mark.parametrize("place", ["lock", "json"])
@pytest.mark.parametrize("what", ["link", "folder", "FIFO"])
def test_what_is_in_the_place_of_the_limits_files_is_named(kernel: Path, place: str, what: str) -> None:
    path = limits.LIMITS_FILE.with_suffix(f".{place}")
    match what:
        case "link":
            path.symlink_to(path.parent)
        case "folder":
            path.mkdir()
        case "FIFO":
            os.mkfifo(path)
    code = "rig.lab-not-lockable" if place == "lock" else "rig.limits-not-readable"
    with raises(code) as refused:
        limits.make_room("one", 4, ENTRIES)
    assert refused.value.where == str(path)
    assert limits.read_limits(4) == KERNELS_OWN


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"before": {}}',
        '{"before": {"5": {}}, "needs": {}}',
        '{"before": {"4": {"gc_thresh1": 128}}, "needs": {}}',
        '{"before": {}, "needs": {"one": {"ip_version": 4, "entries": "many"}}}',
        "[" * 100_000,
    ],
)
def test_what_is_not_what_we_wrote_changes_no_limit(kernel: Path, text: str) -> None:
    limits.make_room("one", 4, ENTRIES)
    limits.LIMITS_FILE.write_text(text)
    with raises("rig.limits-not-readable"):
        limits.make_room("two", 4, ENTRIES)
    with raises("rig.limits-not-readable"):
        limits.give_back("one")
    assert limits.read_limits(4) == raised(ENTRIES)
    assert limits.LIMITS_FILE.read_text() == text


def _room() -> int:
    found = limits.read_limits(4)
    assert found is not None
    return min(found.values())


def _needs() -> dict[str, object]:
    return dict(json.loads(limits.LIMITS_FILE.read_text())["needs"]) if limits.LIMITS_FILE.exists() else {}


@pytest.fixture
def _limits_are_to_be_seen() -> None:
    if os.geteuid() != 0 or limits.read_limits(4) is None:
        pytest.skip("needs root in the initial network namespace")


def _is_back(lab: str, before: dict[str, int] | None) -> bool:
    # Somebody else's lab may need room as well; then the file is there, and the last one puts it back.
    return lab not in _needs() and (limits.LIMITS_FILE.exists() or limits.read_limits(4) == before)


@pytest.mark.root
@pytest.mark.usefixtures("_limits_are_to_be_seen")
@pytest.mark.parametrize(
    "end", ["down", "exception", "ctrl-c", "killed, then down", "killed, then up for a gateway plan"]
)
def test_the_kernels_own_limits_are_back_however_a_lab_ends(lab_name: str, end: str) -> None:
    """SEED-23: the one thing that a lab takes from the whole host."""
    before = None if limits.LIMITS_FILE.exists() else limits.read_limits(4)
    if end == "exception":
        with pytest.raises(ZeroDivisionError), linux_lab(FULL, name=lab_name):
            _ = 1 / (_room() < ENTRIES)
    elif end == "down":
        lab = lab_up(FULL, name=lab_name)
        table = lab.facts()["neighbor_table"]
        assert table["limits"]["gc_thresh1"] >= ENTRIES
        assert table["entries"] == {"left": {}, "right": {}}
        assert {"entries", "table_fulls"} <= set(table["cache"])
        lab_down(lab_name)
    else:
        with holder(lab_name, "direct_v4_net16") as process:
            assert _room() >= ENTRIES
            process.send_signal(signal.SIGINT if end == "ctrl-c" else signal.SIGKILL)
            process.wait(GUARD_S)
        assert (lab_name in _needs()) == end.startswith("killed")
        if end == "killed, then down":
            assert lab_down(lab_name)
        elif end.startswith("killed"):
            lab_up(make_plan("gateway_v4"), name=lab_name)
            assert lab_status(lab_name) is not None
    assert _is_back(lab_name, before)


@pytest.mark.root
@pytest.mark.usefixtures("_limits_are_to_be_seen")
def test_a_lab_whose_limits_cannot_be_raised_leaves_nothing(
    lab_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SYSCTLS", Path("/nowhere"))
    with raises("rig.limits-not-visible") as refusal:
        lab_up(FULL, name=lab_name)
    assert refusal.value.exit_code == 3
    assert state.read_record(lab_name) is None
    lab_up(make_plan("gateway_v4"), name=lab_name)

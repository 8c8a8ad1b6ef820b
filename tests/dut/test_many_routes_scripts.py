# SPDX-License-Identifier: Apache-2.0
"""What `evenhand dut setup` prints and writes for thousands of routes: run for real on Linux, FRR and BIRD in
a network namespace, and compared line by line where there is no such system here."""

from __future__ import annotations

import contextlib
import io
import subprocess
from pathlib import Path

import pytest

from evenhand.cli.main import main
from evenhand.plan import IpVersion, read_plan_file
from tests.dut.test_many_routes import plan_text
from tests.dut.test_routing_daemons import BEGIN, BIRD, DAEMONS, FRR, UNSHARED

ROUTES = 5_000
NAMES = {"left": "left0", "right": "right0"}
WALK = """
count() { ip -$4 route show via $5 | wc -l; }
echo "before $(count "$@")"
sh -e ./set-up
echo "set up $(count "$@")"
sh -e ./set-up
echo "again $(count "$@")"
sh -e ./undo
tries=60; while test "$(count "$@")" -gt 0 && test $tries -gt 0; do tries=$((tries - 1)); sleep 1; done
echo "undone $(count "$@")"
"""


def printed(folder: Path, system: str, version: IpVersion, *options: str) -> None:
    """The set-up and its undo, each with its files, in folders of their own."""
    (folder / "own.toml").write_text(plan_text(version, ROUTES))
    names = NAMES if system in ("linux", "frr", "bird") else {"left": "ge-0/0/0", "right": "ge-0/0/1"}
    for what, option in (("set-up", ()), ("undo", ("--undo",))):
        asked = ["dut", "setup", str(folder / "own.toml"), "--os", system, *options, *option]
        for side, name in names.items():
            asked += [f"--{side}", name]
        if what == "set-up" or system not in ("linux", "bird"):
            (folder / f"for-{what}").mkdir()
            asked += ["--routes-in", str(folder / f"for-{what}")]
        text = _text(asked)
        (folder / what).write_text(text)


def _text(asked: list[str]) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main(asked) == 0
    return output.getvalue()


@pytest.mark.root
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize(
    "system",
    [
        "linux",
        pytest.param(
            "frr",
            marks=[pytest.mark.thorough, pytest.mark.skipif(not FRR.exists(), reason="there is no FRR")],
        ),
        pytest.param("bird", marks=pytest.mark.skipif(not BIRD.exists(), reason="there is no BIRD")),
    ],
)
def test_the_routes_of_a_file_come_and_go(tmp_path: Path, system: str, version: IpVersion) -> None:
    """Twice, as a script may be run again."""
    printed(tmp_path, system, version)
    own = (
        ("192.0.2.1/24", "203.0.113.0/24", "192.0.2.9")
        if version == 4
        else ("2001:db8:9::1/64", "2001:db8:10::/64", "2001:db8:9::9")
    )
    # The files lie where the script looks for them: of the undo where that is run.
    walk = WALK.replace("sh -e ./set-up", "(cd for-set-up; sh -e ../set-up)").replace(
        "sh -e ./undo",
        f"(cd {'for-undo' if system == 'frr' else '.'}; sh -e {'../' if system == 'frr' else './'}undo)",
    )
    gateway = "10.0.0.2" if version == 4 else "fd00:1::2"
    script = "\n".join((BEGIN, DAEMONS.get(system, ""), walk))
    done = subprocess.run(
        [*UNSHARED, "sh", "-c", script, "walk", *own, str(version), gateway],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    said = [line for line in done.stdout.splitlines() if line.split()[0:1] and line[0] in "bsau"]
    found = dict(line.rsplit(" ", 1) for line in said if line.rsplit(" ", 1)[-1].isdecimal())
    assert found == {"before": "0", "set up": str(ROUTES), "again": str(ROUTES), "undone": "0"}


def test_files_for_vpp_and_junos_have_a_line_for_each_prefix(tmp_path: Path) -> None:
    for system, version, there, back in (
        ("vpp", 4, "ip route add {} via 10.0.0.2 ge-0/0/0", "ip route del {} via 10.0.0.2 ge-0/0/0"),
        ("vpp", 6, "ip route add {} via fd00:1::2 ge-0/0/0", "ip route del {} via fd00:1::2 ge-0/0/0"),
        (
            "junos",
            4,
            "set routing-options static route {} next-hop 10.0.0.2",
            "delete routing-options static route {}",
        ),
        (
            "junos",
            6,
            "set routing-options rib inet6.0 static route {} next-hop fd00:1::2",
            "delete routing-options rib inet6.0 static route {}",
        ),
    ):
        folder = tmp_path / f"{system}-{version}"
        folder.mkdir()
        printed(folder, system, version)  # type: ignore[arg-type]
        prefixes = read_plan_file(folder / "own.toml").left.prefixes
        assert prefixes is not None
        for what, line in (("set-up", there), ("undo", back)):
            (file,) = (folder / f"for-{what}").iterdir()
            # The file of the set-up may still lie on the DUT when its undo runs.
            assert file.name == f"evenhand-own-left{'-undo' if what == 'undo' else ''}.routes"
            assert [text for text in file.read_text().splitlines() if text] == [
                line.format(text) for text in prefixes.texts()
            ]
            assert f"Copy {file.name}" in (folder / what).read_text()


def test_a_system_without_files_of_routes_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.toml"
    path.write_text(plan_text(4, ROUTES))
    asked = ["dut", "setup", str(path), "--left", "em0", "--right", "em1"]
    assert main([*asked, "--os", "freebsd"]) == 2
    assert "there are no commands for so many under FreeBSD" in capsys.readouterr().err
    assert main([*asked, "--os", "linux"]) == 2
    assert "go into files beside it" in capsys.readouterr().err
    assert main([*asked, "--os", "linux", "--routes-in", str(tmp_path / "none")]) == 2
    assert "there is no folder" in capsys.readouterr().err
    few = ["dut", "setup", "gateway-v4", "--left", "em0", "--right", "em1", "--os", "linux"]
    assert main([*few, "--routes-in", str(tmp_path)]) == 2
    assert "needs no file of routes" in capsys.readouterr().err

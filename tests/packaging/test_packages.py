# SPDX-License-Identifier: Apache-2.0
"""What `make package` makes its packages of: versions that agree, every library that DPDK loads, nothing
unpinned.

No package is built here: `make package` and `tools/package-check` do that.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import evenhand
from evenhand.testbed.drivers import DRIVERS, PCI

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
has_dpdk = any(Path("/usr/lib").glob("*/dpdk/pmds-*/librte_net_memif.so.*"))


def groups(path: Path) -> dict[str, list[str]]:
    """Group to the first words of its lines."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            name = line.strip("[]")
            found[name] = []
        elif line and not line.startswith("#"):
            found[name].append(line.split()[0])
    return found


def fields(package: str) -> dict[str, str]:
    """The fields of one paragraph of debian/control: that of a binary package, or `source`."""
    lines = [
        line
        for line in (PACKAGING / "debian" / "control").read_text().splitlines()
        if not line.startswith("#")
    ]
    for paragraph in "\n".join(lines).split("\n\n"):
        made = {
            name: " ".join(value.split())
            for name, value in re.findall(r"^([\w-]+):(.*(?:\n .*)*)", paragraph, re.MULTILINE)
        }
        if made.get("Package", "source") == package:
            return made
    raise AssertionError(package)


def pins(name: str) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / name).read_text(), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", package).lower(): version for package, version in found}


def test_all_say_the_same_version() -> None:
    """The engine takes it from VERSION, the wheel from `__version__`, the packages from VERSION, people from
    CHANGELOG.md."""
    version = (ROOT / "VERSION").read_text().strip()
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert {evenhand.__version__, newest[1]} == {version}
    assert (
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["version"]["path"]
        == "python/evenhand/base/version.py"
    )


def test_the_engine_depends_on_every_driver_that_a_testbed_may_name() -> None:
    """DPDK loads them at run time: no linker knows of them, and without the pool's no port opens at all."""
    software = {"net_virtio" if name == "net_virtio_user" else name for name in DRIVERS if name != PCI}
    listed = groups(PACKAGING / "dpdk-drivers.txt")
    assert {"mempool_ring", "bus_vdev", "bus_pci", *software} == set(listed["Depends"])
    assert not set(listed["Depends"]) & set(listed["Recommends"])
    assert "${evenhand:Drivers}" in fields("evenhand-engine")["Depends"]
    assert fields("evenhand-engine")["Recommends"] == "${evenhand:RecommendedDrivers}"


@pytest.mark.thorough
@pytest.mark.skipif(not has_dpdk, reason="no libdpdk-dev here")
@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="no dpkg-query: not a Debian system")
@pytest.mark.parametrize("group", ["Depends", "Recommends"])
def test_each_driver_has_a_package_here(group: str) -> None:
    """On Debian 12 and 13 alike, though the names carry another ABI there."""
    ended = subprocess.run(
        [PACKAGING / "driver-packages", group], capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    found = ended.stdout.strip().split(", ")
    wanted = groups(PACKAGING / "dpdk-drivers.txt")[group]
    assert [re.sub(r"-?\d{2}$", "", name) for name in found] == sorted(
        f"librte-{name.replace('_', '-')}" for name in wanted
    )


def test_a_driver_that_is_nowhere_ends_the_build(tmp_path: Path) -> None:
    """A package that lacks it would be found out on somebody's machine."""
    shutil.copy(PACKAGING / "driver-packages", tmp_path)
    (tmp_path / "dpdk-drivers.txt").write_text("[Depends]\nnet_no_such_thing  # reason\n")
    ended = subprocess.run(
        [tmp_path / "driver-packages", "Depends"], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 3
    assert "librte_net_no_such_thing" in ended.stderr


def test_the_packages_ask_for_what_a_checkout_asks_for() -> None:
    """What fills the virtualenv of a checkout is not needed where it came in a package; util-linux is on
    every Debian (essential)."""
    listed = groups(ROOT / "tools" / "debian-packages.txt")
    depends = {word.split()[0] for word in fields("evenhand")["Depends"].split(",")}
    assert set(listed["run"]) - {"python3-venv", "ca-certificates", "util-linux"} <= depends
    building = {word.split()[0] for word in fields("source")["Build-Depends"].split(",")}
    assert set(listed["build"]) <= building


def test_the_package_brings_along_what_the_lock_has() -> None:
    """The versions that the tests ran with, each with the hashes of its wheels; not the build back end."""
    brought, locked = pins("requirements-package.lock"), pins("requirements.lock")
    assert {name: version for name, version in brought.items() if locked.get(name) != version} == {}
    names = re.search(r"'\^\((.*)\)=='", (PACKAGING / "fill-virtualenv").read_text())
    assert names is not None
    assert set(locked) - set(brought) == set(names[1].split("|")) - {"packaging"}
    text = (ROOT / "requirements-package.lock").read_text()
    entries = re.findall(r"^[\w.-]+==[\w.]+(?: \\\n    --hash=sha256:[0-9a-f]{64})+$", text, re.MULTILINE)
    assert len(entries) == len(brought)
    # A wheel with compiled code is another for each Python and machine: Debian 12 and 13, amd64 and arm64.
    (numpy,) = [entry for entry in entries if entry.startswith("numpy==")]
    assert numpy.count("--hash") == 4


def test_the_wheel_has_every_file_of_the_package(tmp_path: Path) -> None:
    """Presets and templates too: installed, there is no checkout to read them from."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(command, check=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"evenhand-{evenhand.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("evenhand/")}
    sources = {
        path
        for path in (ROOT / "python" / "evenhand").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == {str(path.relative_to(ROOT / "python")) for path in sources}


def test_the_copyright_file_names_each_package_that_comes_along(tmp_path: Path) -> None:
    """Whoever hands the package on must know under what; Evenhand's own dependencies must go with
    Apache-2.0."""
    own = PACKAGING / "debian" / "copyright"
    ended = subprocess.run(
        [sys.executable, PACKAGING / "copyright.py", sys.prefix, own],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(own.read_text().rstrip())
    told = dict(re.findall(r"^Comment: (\S+) (\S+), a wheel", ended.stdout, re.MULTILINE))
    for name, version in pins("requirements-package.lock").items():
        assert {re.sub(r"[-_.]+", "-", package).lower(): told[package] for package in told}[name] == version
    assert re.search(
        r"^License: numpy-[\d.]+\n .*BSD.*\n /usr/lib/evenhand/lib/python3\.\d+/site-packages/numpy-",
        ended.stdout,
        re.MULTILINE,
    )
    assert "evenhand-0" not in ended.stdout


def test_what_is_built_is_not_in_git() -> None:
    ended = subprocess.run(
        ["git", "check-ignore", "dist/x.deb", "build-package/x"], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.stdout.split() == ["dist/x.deb", "build-package/x"]

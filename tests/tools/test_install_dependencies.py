# SPDX-License-Identifier: Apache-2.0
"""Who builds installs what building takes and nothing else; who may not install is told what to ask for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).resolve().parents[2]
HANGS_S = 600
"""One of them fills a .venv: a minute on a busy host."""
GROUPS = ("build", "run", "test", "lint", "docs", "bench", "package", "prove")
NOBODY = 65534

# bash and sed are on every Debian. It offers hello, which nobody has, and none of the others.
LIST = """# [comment]
[build]
bash                  # is there
evenhand-no-such-a    # is missing
[run]
sed | evenhand-no-such-b   # one of two is enough
evenhand-no-such-c | bash
[test]
evenhand-no-such-a
evenhand-no-such-d | evenhand-no-such-e
[lint]
evenhand-no-such-f | -     # Debian offers none: then nothing
evenhand-no-such-g | hello
"""

needs_dpkg = pytest.mark.skipif(
    shutil.which("dpkg-query") is None, reason="no dpkg-query: not a Debian system"
)
needs_lists = pytest.mark.skipif(
    not any(Path("/var/lib/apt/lists").glob("*Packages*")), reason="apt has no package lists here"
)


def make_checkout(folder: Path) -> Path:
    """The script with a package list of the test's own."""
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "install-dependencies", folder / "tools")
    (folder / "tools" / "debian-packages.txt").write_text(LIST)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path)


@pytest.mark.thorough
@needs_dpkg
def test_a_lock_of_apt_is_waited_for_and_that_is_said_once(checkout: Path) -> None:
    """A first boot installs updates by itself, and the first command of a new user failed."""
    programs = checkout / "programs"
    programs.mkdir()
    fake = programs / "apt-get"
    fake.write_text(
        f"""#!/bin/sh
echo "$*" >>{checkout}/calls
test "$(wc -l <{checkout}/calls)" -gt 3 && exit 0
echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)' >&2
exit 100
"""
    )
    fake.chmod(0o755)
    (programs / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
    (programs / "sudo").chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    ended = run(checkout, "test", environment={**os.environ, "PATH": path, "EVENHAND_APT_WAIT_S": "0"})
    assert ended.stdout.count("another program has apt's lock") == 1, ended.stdout + ended.stderr
    calls = (checkout / "calls").read_text().splitlines()
    assert len(calls) >= 5
    assert "update" in calls[3]
    assert "install" in calls[4]


def run(
    checkout: Path, *arguments: str, environment: dict[str, str] | None = None, user: int | None = None
) -> subprocess.CompletedProcess[str]:
    command = [str(checkout / "tools" / "install-dependencies"), *arguments]
    return subprocess.run(
        command, cwd="/", env=environment, user=user, capture_output=True, text=True, timeout=HANGS_S
    )


def missing(checkout: Path, *groups: str) -> list[str]:
    ended = run(checkout, "--missing", *groups)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()


@needs_dpkg
def test_only_what_a_group_lists_and_the_system_lacks_is_missing(checkout: Path) -> None:
    assert missing(checkout, "build") == ["evenhand-no-such-a"]
    assert missing(checkout, "run") == []
    assert missing(checkout, "build", "run") == ["evenhand-no-such-a"]


@pytest.mark.thorough
@needs_dpkg
@needs_lists
def test_of_several_packages_the_first_that_debian_offers_is_missing(checkout: Path) -> None:
    assert missing(checkout, "test") == ["evenhand-no-such-a", "evenhand-no-such-d"]
    assert missing(checkout, "lint") == ["hello"]
    # Without names, all groups; what two of them want is named once.
    assert missing(checkout) == ["evenhand-no-such-a", "evenhand-no-such-d", "hello"]


def test_unknown_group_is_refused_and_the_known_ones_are_named(checkout: Path) -> None:
    ended = run(checkout, "everything")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (
        ended.stderr
        == "tools/install-dependencies: there is no group everything; there are: build run test lint\n"
    )


@needs_dpkg
def test_user_without_sudo_is_told_what_root_has_to_run() -> None:
    """Exit code 3, nothing was installed, and the last line is the command, ready to be copied."""
    # Not in tmp_path, where another user cannot look.
    with TemporaryDirectory(prefix="evenhand-") as folder:
        checkout = make_checkout(Path(folder))
        programs = checkout / "bin"
        programs.mkdir()
        for name in (
            "bash",
            "env",
            "dirname",
            "sed",
            "awk",
            "grep",
            "sort",
            "xargs",
            "dpkg-query",
            "apt-cache",
            "apt-get",
        ):
            (programs / name).symlink_to(str(shutil.which(name)))
        checkout.chmod(0o755)
        user = NOBODY if os.geteuid() == 0 else None
        ended = run(checkout, "build", environment={"PATH": str(programs)}, user=user)
    assert ended.returncode == 3
    assert ended.stdout == ""
    assert ended.stderr.splitlines() == [
        "dependencies: these Debian packages are missing, and there is no sudo. Have root run this, then run"
        " make again:",
        "  apt-get update && apt-get install --yes --no-install-recommends evenhand-no-such-a",
    ]


def test_real_list_has_all_groups_and_a_reason_for_each_package() -> None:
    text = (ROOT / "tools" / "debian-packages.txt").read_text()
    assert tuple(re.findall(r"^\[(\w+)\]", text, re.MULTILINE)) == GROUPS
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", "["))]
    assert [
        line for line in lines if not re.fullmatch(r"[a-z0-9.+-]+(?: \| [a-z0-9.+-]+)* +# \S.*", line)
    ] == []


def _groups_that_make_installs(*verbs: str) -> set[str]:
    """Which groups a bare checkout's Makefile asks for; nothing is run."""
    shown = subprocess.run(
        ["make", "--dry-run", "--always-make", *verbs], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return {
        group
        for line in re.findall(r"^tools/install-dependencies (.*)$", shown, re.MULTILINE)
        for group in line.split()
    }


@pytest.mark.parametrize(
    ("verb", "groups"),
    [
        ("build", {"build", "run"}),
        ("demo", {"build", "run"}),
        ("demo-linux", {"build", "run"}),
        ("docs", {"build", "run", "docs"}),
        ("test", {"build", "run", "test"}),
        ("prove", {"build", "run", "test", "prove"}),
        ("lint", {"build", "run", "lint", "docs"}),
        ("format", {"build", "run", "lint"}),
        ("bench", {"build", "run", "bench"}),
        ("package", {"build", "run", "package"}),
        ("deps", set(GROUPS)),
    ],
)
def test_verb_installs_the_groups_it_needs(verb: str, groups: set[str]) -> None:
    assert _groups_that_make_installs(verb) == groups


def _locked(name: str) -> dict[str, str]:
    pins = [
        line.partition("==") for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")
    ]
    return {_normal(package): version for package, _, version in pins}


def _normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=~! ]", package)[0]).lower()


def test_lock_files_hold_what_pyproject_asks_for_each_package_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    to_run, besides, for_docs = (
        _locked(name) for name in ("requirements.lock", "requirements-dev.lock", "requirements-docs.lock")
    )
    assert {_normal(name) for name in project["dependencies"]} <= set(to_run)
    assert {_normal(name) for name in project["optional-dependencies"]["dev"]} <= set(besides)
    assert {_normal(name) for name in project["optional-dependencies"]["docs"]} <= set(to_run | for_docs)
    assert set(to_run) & set(besides | for_docs) == set()
    assert {name: besides[name] for name in set(besides) & set(for_docs)} == {
        name: for_docs[name] for name in set(besides) & set(for_docs)
    }
    to_distribute = _locked("requirements-distributed.lock")
    assert {_normal(name) for name in project["optional-dependencies"]["distributed"]} <= set(to_distribute)
    to_serve = _locked("requirements-serve.lock")
    for_devices = _locked("requirements-devices.lock")
    assert {_normal(name) for name in project["optional-dependencies"]["devices"]} <= set(for_devices)
    assert {_normal(name) for name in project["optional-dependencies"]["serve"]} <= set(to_serve)
    assert set(to_run) & (set(to_distribute) | set(to_serve) | set(for_devices)) == set()
    for others in (besides, for_docs, to_serve, _locked("requirements-prove.lock")):
        assert {name: to_distribute[name] for name in set(to_distribute) & set(others)} == {
            n: others[n] for n in set(to_distribute) & set(others)
        }
    assert all(to_run.values())
    assert all(to_distribute.values())
    assert all(besides.values())
    assert all(for_docs.values())


def test_virtualenv_holds_the_locked_versions() -> None:
    """What tests find is what a user gets."""
    if Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("runs in another virtualenv")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "freeze", "--exclude-editable"]
    frozen = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {_normal(line): line.partition("==")[2] for line in frozen.splitlines()}
    wanted = (
        _locked("requirements.lock")
        | _locked("requirements-dev.lock")
        | _locked("requirements-distributed.lock")
        | _locked("requirements-serve.lock")
        | _locked("requirements-devices.lock")
    )
    assert {name: found.get(name) for name in wanted} == wanted

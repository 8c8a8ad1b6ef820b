# SPDX-License-Identifier: Apache-2.0
"""dask's TLS as the how-to sets it up: with a certificate of the lab's authority a campaign is measured,
without one nobody gets in."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from evenhand.run import PointState, read_record
from tests.docs.documents import blocks
from tests.run.campaign.dask_processes import cluster
from tests.run.campaign.small_campaign import OPTIONS, write_campaign

pytest.importorskip("distributed")
CAMPAIGN = f"""
name = "encrypted"
[[suite]]
name = "a"
hosts = 1
repetitions = 1
{OPTIONS}
"""


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def certify(folder: Path) -> None:
    """An authority and a machine's certificate of it, under the names of the how-to."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout")
    openssl(folder, "req", "-x509", *key, "ca.key", "-out", "ca.pem", "-subj", "/CN=lab", "-days", "3")
    openssl(folder, "req", *key, "this-machine.key", "-out", "this-machine.csr", "-subj", "/CN=this-machine")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "3")
    openssl(folder, "x509", "-req", "-in", "this-machine.csr", *signed, "-out", "this-machine.pem")


def configured(folder: Path) -> dict[str, str]:
    """The environment in which dask finds the configuration of the how-to."""
    (shown,) = blocks("yaml", document="docs/how-to/measure-on-several-testbeds.md")
    (folder / "distributed.yaml").write_text(shown.text.replace("/etc/lab/", f"{folder}/"))
    return {"DASK_CONFIG": str(folder)}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_only_who_has_a_certificate_of_the_lab_takes_part(tmp_path: Path) -> None:
    ours, others = tmp_path / "ours", tmp_path / "others"
    for folder in (ours, others):
        folder.mkdir()
        certify(folder)
    write_campaign(tmp_path, CAMPAIGN, part="simulated-640000--512")
    with cluster(tmp_path, configured(ours)) as running:
        assert running.address.startswith("tls://127.0.0.1:")
        running.begin_worker("munich", "testbed.toml", "--engine", str(tmp_path / "engine"))
        running.wait_for("munich")
        measure = ("run", "small.toml", "--scheduler", running.address, "--no-html", "--run")
        mine, running.environment = running.environment, {**running.environment, **configured(others)}
        refused = running.run(*measure, "others.evenhand")
        assert refused.returncode == 3, refused.stderr
        assert "certificate of the same authority" in refused.stderr
        assert not (tmp_path / "others.evenhand").exists()
        # The same scheduler, which was there all the time.
        running.environment = mine
        ended = running.run(*measure, "ours.evenhand")
        assert ended.returncode == 0, ended.stderr + running.log("munich")
        (point,) = read_record(tmp_path / "ours.evenhand").points
        assert (point.state, [r.testbed for r in point.repetitions]) == (PointState.MEASURED, ["munich"])

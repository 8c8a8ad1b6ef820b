# SPDX-License-Identifier: Apache-2.0
"""OTG in YAML is read as the same in JSON, and nothing that JSON cannot say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from evenhand.exchange.formats import kind_of
from evenhand.exchange.otg_read import import_otg, read_yaml
from evenhand.exchange.otg_write import otg_of
from evenhand.exchange.outcome import GivenHardware
from evenhand.plan import make_plan
from tests.errors import raises


@pytest.mark.parametrize("name", ["gateway-v4", "direct-v6"])
def test_yaml_and_json_become_the_same(tmp_path: Path, name: str) -> None:
    plan = make_plan(name, 10)
    document = otg_of(
        plan, directions=("forward", "reverse"), frame_size=128, rate_fps=1000, duration_s=5, seed=1
    ).document
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(document, sort_keys=False))

    text = (tmp_path / "a.yaml").read_text()
    commented = text.replace("flows:\n", "flows:  # ours\n# all of them\n").replace(
        "tx_rx:", "tx_rx:  # ports"
    )
    (tmp_path / "b.yaml").write_text(commented)
    assert kind_of(tmp_path / "b.yaml") == kind_of(tmp_path / "a.yaml") == "otg"
    (tmp_path / "a.json").write_text(json.dumps(document))
    found = []
    for file in ("a.yaml", "a.json"):
        assert kind_of(tmp_path / file) == "otg"
        found.append(import_otg(tmp_path / file, GivenHardware(), plan=None, testbed=Path("bed.toml")))
    assert found[0].commands == found[1].commands != ()
    assert found[0].rows == found[1].rows


@pytest.mark.parametrize(
    "text",
    [
        "a: &x [1]\nb: *x\n",
        "a: !!python/object/apply:os.system ['true']\n",
        "a: 2020-01-01\n",
        "a: .inf\n",
        "a: [1\n",
        "[" * 100 + "]" * 100,
        "a: 1\n\tb: 2\n",
        "- 1\n" * 250_000,
    ],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (each has another reason)
        read_yaml(text)


def test_without_pyyaml_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with raises("exchange.yaml-missing"):
        read_yaml("a: 1")

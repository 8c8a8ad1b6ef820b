# SPDX-License-Identifier: Apache-2.0
"""The router's configuration comes from the same plan and model as the test and its prediction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.plan import TOPOLOGIES, SideName, make_own_plan, make_plan
from evenhand.predict import DeviceModel
from evenhand.reference import Defects, NeighborCost, ReferenceDut
from evenhand.reference.config import prefixes_in_files, write_route_files
from tests.errors import raises

CONTRACT = Path(__file__).parents[2] / "contract"
DEVICES: dict[SideName, str] = {"left": "net_ring0", "right": "net_ring1"}
MODEL = DeviceModel(elements=36, hash_type="type2", symmetric=True, rate_fps=50_000, queue_frames=512)
FULL = ReferenceDut(
    model=MODEL,
    extra_delay_us=100,
    neighbor_cost=NeighborCost(free_entries=4096, growth=0.1),
    defects=Defects(seed=3, ratios={"loss": 0.01}, at={"loss": (5,), "reordering": (1, 2)}),
    static_neighbors={"10.0.0.2": "02:00:00:00:00:01"},
    largest_frame_size=9216,
    vlans={"left": (100,), "right": (200, 101)},
)


def schema() -> dict[str, Any]:
    return dict(json.loads((CONTRACT / "router-config.schema.json").read_text()))


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("dut", [ReferenceDut(), FULL], ids=["plain", "full"])
def test_every_plan_makes_a_configuration_of_the_contract(name: str, dut: ReferenceDut) -> None:
    """SEED-10 to SEED-17, SEED-31: addresses and routes of the DUT are those of the plan."""
    plan = make_plan(name)
    config = dut.router_config(plan, DEVICES, cpu=0)
    jsonschema.validate(config, schema())
    for side in plan.sides:
        assert config["ports"][side.name]["addresses"] == [str(interface) for interface in side.dut]
    routes = {route["network"]: route["via"] for route in config["routes"]}
    assert routes == {
        str(network): str(side.gateway.ip) for side in plan.sides if side.gateway for network in side.routes
    }


@pytest.mark.parametrize("version", [4, 6])
def test_routes_that_are_too_many_are_in_a_file(version: int, tmp_path: Path) -> None:
    """Those of the other side are few, and stay in the configuration."""
    v4 = version == 4
    plan = make_own_plan(
        {
            "left": {
                "dut": "10.0.0.1/24" if v4 else "fd00:1::1/64",
                "gateway": "10.0.0.2" if v4 else "fd00:1::2",
                "routes": 5000,
                "lengths": "internet",
                "first": "16.0.0.0" if v4 else "2a00::",
            },
            "right": {
                "dut": "10.0.1.1/24" if v4 else "fd00:2::1/64",
                "gateway": "10.0.1.2" if v4 else "fd00:2::2",
                "routes": 3,
            },
        },
        where="own.toml",
    )
    files = write_route_files(plan, tmp_path)
    config = ReferenceDut().router_config(plan, DEVICES, cpu=0) | {"route_files": files}
    jsonschema.validate(config, schema())
    assert len(config["routes"]) == 3
    (file,) = files
    assert file["via"] == str(plan.left.gateway.ip if plan.left.gateway else None)
    assert plan.left.prefixes is not None
    assert Path(file["path"]).read_text().splitlines() == list(plan.left.prefixes.texts())
    assert prefixes_in_files(plan) == 5000
    assert write_route_files(make_plan("gateway-v4"), tmp_path) == []


@pytest.mark.parametrize("name", ["gateway-v4", "direct-v6"])
def test_each_further_pair_has_the_same_addresses(name: str) -> None:
    more: list[dict[SideName, str]] = [
        {"left": f"net_ring{n}", "right": f"net_ring{n + 1}"} for n in (2, 4, 6)
    ]
    config = FULL.router_config(make_plan(name), DEVICES, cpu=0, more_devices=more)
    jsonschema.validate(config, schema())
    pairs = [config["ports"], *config["more_ports"]]
    assert [[pair[side].pop("device") for side in ("left", "right")] for pair in pairs] == [
        list(each.values()) for each in (DEVICES, *more)
    ]
    assert all(pair == pairs[0] for pair in pairs)


def test_the_model_is_handed_over_whole() -> None:
    """RSS-01, RSS-04, RSS-05."""
    elements = FULL.router_config(make_plan("gateway-v6"), DEVICES, cpu=3)["elements"]
    assert (elements["count"], elements["hash"], elements["symmetric"]) == (36, "type2", True)
    assert bytes.fromhex(elements["key"]) == MODEL.key
    assert tuple(elements["table"]) == MODEL.table
    assert (elements["rate_fps"], elements["queue_frames"]) == (50_000, 512)


def test_tags_and_the_largest_frame_are_handed_over() -> None:
    """R5180-09, R8219-01; without them the configuration does not speak of them."""
    config = FULL.router_config(make_plan("gateway-v6"), DEVICES, cpu=0)
    assert (config["ports"]["left"]["vlan"], config["ports"]["right"]["vlan"]) == ([100], [200, 101])
    assert config["largest_frame_size"] == 9216
    plain = ReferenceDut(vlans={"right": (7,)}).router_config(make_plan("gateway-v6"), DEVICES, cpu=0)
    assert "vlan" not in plain["ports"]["left"]
    assert "largest_frame_size" not in plain


def test_defects_are_listed_by_kind() -> None:
    assert FULL.router_config(make_plan("gateway-v4"), DEVICES, cpu=0)["defects"] == {
        "seed": 3,
        "loss": {"ratio": 0.01, "at": [5]},
        "reordering": {"at": [1, 2]},
    }


@pytest.mark.parametrize(
    ("name", "pool", "prefix"),
    [
        ("nat44", {"first": "198.18.0.1", "count": 300, "offset": 2}, None),
        ("nat64", {"first": "198.18.0.1", "count": 300, "offset": 2}, "2001:2:0:64::/96"),
        ("nat66", {"first": "2001:2:0:4000::1", "count": 300, "offset": 14}, None),
    ],
)
def test_the_addresses_of_a_nat_are_those_of_the_plan(
    name: str, pool: dict[str, Any], prefix: str | None
) -> None:
    """The pool is counted as the hosts of the plan are; all else is as it is asked for."""
    dut = ReferenceDut(nat_options={"capacity": 1000, "when_full": "replace", "lost_entry_every": 7})
    config = dut.router_config(make_plan(name, (300, 200)), DEVICES, cpu=0)
    jsonschema.validate(config, schema())
    assert config["nat"] == {
        "inside": "left",
        "pool": pool,
        **({} if prefix is None else {"prefix": prefix}),
        "capacity": 1000,
        "when_full": "replace",
        "lost_entry_every": 7,
    }
    assert "nat" not in dut.router_config(make_plan("gateway-v4"), DEVICES, cpu=0)


def test_what_the_router_cannot_be_is_refused() -> None:
    with raises("rig.rate-missing"):
        ReferenceDut(model=DeviceModel())
    with raises("rig.out-of-range", match="1024 elements"):
        ReferenceDut(model=DeviceModel(elements=1024, rate_fps=1e3))
    with raises("rig.not-a-defect", match="'losses'"):
        Defects(ratios={"losses": 0.1})

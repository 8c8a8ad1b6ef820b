# SPDX-License-Identifier: Apache-2.0
"""Campaign files: what is wrong is named with its value and place and what to do, before anything is
measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenhand.base.errors import RequestError
from evenhand.procedure.registry import PROCEDURES
from evenhand.spec.file import make_campaign, read_campaign
from evenhand.spec.points import expand
from evenhand.spec.request import point_defaults
from tests.errors import raises
from tests.run.campaign.campaigns import campaign

SUITE = "c.toml: suite 'a': "
BAD_SUITES: list[tuple[dict[str, Any], str, str, str]] = [
    ({"host": 3}, "host", "unknown key 'host'", "Did you mean 'hosts'?"),
    ({"hosts": 70000}, "hosts", "70000 hosts: gateway-v4 has 1 to 65534", ""),
    ({"hosts": "many"}, "hosts", "'many' is not a number of hosts", "Write one number, or two like 100,1"),
    ({"hosts": []}, "hosts", "is empty: at least one is needed", ""),
    ({"hosts": 0}, "hosts", "0", ""),
    ({"hosts": [16, "16,16"]}, "hosts", "16 hosts are listed twice", "Write each number once."),
    ({"hosts": [1, "doubling"]}, "hosts", "1 hosts are listed twice", "Write each number once."),
    ({"networks": 2}, "networks", "2 networks: gateway-v4 has one", "nets-v4-gateway"),
    ({"plan": "gateway-v7"}, "", "'gateway-v7' is not a plan", "Did you mean gateway-v6?"),
    ({"plan": "gateway-v4+direct-v6"}, "plan", "one has its hosts behind gateways", "gateway-v4+gateway-v6"),
    ({"mix": "50/50"}, "mix", "a mix of 50/50 is given with a single plan", "plan gateway-v4+gateway-v6"),
    ({"host-mode": "random"}, "host-mode", "'random'", ""),
    ({"source-ports": "0-5"}, "source-ports", "'0-5' is not a range of UDP ports", "1024-65535"),
    ({"host-macs": "pseudorandom"}, "host-macs", "are behind a gateway", "direct-v4-net16"),
    ({"frame-sizes": 20}, "frame-sizes", "20 octets: an IPv4 test frame has 64 to 9216", "Use 64 or more."),
    ({"frame-sizes": [64, "all"]}, "frame-sizes", "64 octets is listed twice", "Name each size once."),
    ({"frame-sizes": "imix:aaz"}, "frame-sizes", "the size of z is missing", ""),
    (
        {"frame-sizes": "imix:aaafg", "procedure": "back-to-back"},
        "frame-sizes",
        "bursts consist of frames of one size",
        "",
    ),
    (
        {"frame-sizes": [128, "imix:aaafg"], "procedure": ["throughput", "recovery"]},
        "frame-sizes",
        "IMIX - aaafg",
        "Name sizes alone.",
    ),
    (
        {"procedure": "thruput"},
        "procedure",
        "'thruput' is not one of throughput, loss",
        'Did you mean "throughput"?',
    ),
    ({"procedure": []}, "procedure", "is empty: at least one is needed", ""),
    ({"procedure": ["loss", "loss"]}, "procedure", "'loss' is listed twice", "Write it once."),
    ({"procedure": "latency"}, "rate", "latency: no load given", 'procedure = ["throughput", "latency"]'),
    ({"procedure": "recovery"}, "throughput", "recovery: no load given", 'throughput = "500kfps"'),
    ({"hash-types": "type3"}, "hash-types", "'type3'", ""),
    ({"hash-types": ["type1", "type1"]}, "hash-types", "'type1' is listed twice", ""),
    (
        {"max-burst": "2s"},
        "max-burst",
        "'max-burst' is not an option of throughput",
        "Known here: allow-unreachable",
    ),
    (
        {"inner-repetitions": 3},
        "inner-repetitions",
        "not a procedure that repeats its trials itself",
        "latency",
    ),
    ({"repetitions": 0}, "repetitions", "0 is too small", "Write 1 or more."),
    ({"repetitions": 1001}, "repetitions", "1001", ""),
    ({"repetitions": "10"}, "repetitions", "'10' is not a whole number", "Write it without quotes: 10."),
    ({"repetitions": [10]}, "repetitions", "[10] is not a whole number", "Write it without brackets: 10."),
    ({"repetitions": 10.0}, "repetitions", "10.0 is not a whole number", "Write 10."),
    (
        {"fixed-source": "yes"},
        "fixed-source",
        "'yes' is neither true nor false",
        "Write it without quotes: true.",
    ),
    (
        {"fixed-source": 0},
        "fixed-source",
        "0 is neither true nor false",
        "Write true or false, without quotes.",
    ),
    ({"plan": True}, "plan", "true is not a text", 'Write it in quotes: "true".'),
    ({"hooks": "make"}, "hooks", "'make' is not a table", "Write its keys below a line [suite.hooks]."),
    ({"procedure": "Loss"}, "procedure", "'Loss' is not one of throughput, loss", 'Did you mean "loss"?'),
    ({"duration": 5}, "duration", "5 is not a text", 'Write it in quotes: "5".'),
    ({"duration": "5 parsec"}, "duration", "'5 parsec' is not a duration", "Write a duration like 60"),
    (
        {"final-duration": "1s"},
        "final-duration",
        "is shorter than the trials of the search",
        "at least as long",
    ),
    ({"precision": "0"}, "precision", "must be between 0 and 1", ""),
    ({"loss-ratio": "100%"}, "loss-ratio", "less than 1", ""),
    ({"goal": "NDR"}, "goal", "binary has only one goal", "search mlr"),
    ({"search": "mlr", "goal": ["NDRR"]}, "goal", "'NDRR' is not a goal", "Did you mean NDR?"),
    ({"procedure": "loss", "step": "20%"}, "step", "a step of 20 %", "Use 10% or less."),
    (
        {"procedure": "latency", "rate": "1kfps", "from": "200s"},
        "from",
        "delays count from 3 min 20 s on",
        "",
    ),
    ({"hooks": {"before": "x"}}, "hooks.before", "unknown key 'before'", "Did you mean 'before-suite'?"),
    ({"hooks": {"before-suite": 5}}, "hooks.before-suite", "5 is not a text", 'Write it in quotes: "5".'),
    ({"hooks": {"timeout": 5}}, "hooks.timeout", "5 is not a value with a unit", "in quotes, such as 60"),
    ({"hooks": {"before-suite": " "}}, "hooks.before-suite", "is empty", ""),
]
BAD_FILES: list[tuple[dict[str, Any], str, str, str]] = [
    ({"name": "x"}, "suite", "the file contains nothing to measure", "[[suite]]"),
    ({"name": "x", "suite": []}, "suite", "the file contains nothing to measure", "[[suite]]"),
    ({"name": "x", "suite": {"name": "a"}}, "suite", "suite must be an array of tables", "[[suite]]"),
    ({"name": "x", "suite": [3]}, "suite", "suite must be an array of tables", "[[suite]]"),
    ({"suite": [{"name": "a"}]}, "name", "this key is missing", "Add it."),
    ({"name": "x", "suite": [{}]}, "suite 1: name", "this key is missing", "Add it."),
    ({"name": "x", "suite": [{"name": "a/b"}]}, "suite 'a/b': name", "'a/b'", ""),
    ({"name": "x", "suite": [{"name": "a"}, {"name": "a"}]}, "", "two suites are named 'a'", ""),
    ({"suite": [{}]}, "", "missing here: name, suite 1: name", "Add name. Add name to suite 1."),
    ({"name": "x", "suit": [{"name": "a"}]}, "suit", "unknown key 'suit'", "Did you mean [[suite]]?"),
    (
        {"name": "x", "every_suit": {"hosts": 4}},
        "every_suit",
        "unknown key 'every_suit'",
        "Did you mean [every-suite]?",
    ),
    (campaign({}, refxerence={}), "refxerence", "unknown key 'refxerence'", "Did you mean [reference]?"),
    (
        campaign({}, **{"every-suite": {"hots": 3}}),
        "every-suite: hots",
        "unknown key 'hots'",
        "Did you mean 'hosts'?",
    ),
    (
        campaign({}, every_suite={"repetitions": "2"}),
        "every-suite: repetitions",
        "'2' is not",
        "without quotes: 2.",
    ),
    (
        campaign({"repetitions": "3"}, **{"every-suite": {"repetitions": 2}}),
        "suite 'a': repetitions",
        "'3' is not",
        "3.",
    ),
    (
        campaign({}, **{"every-suite": {"max_burst": "1s"}}),
        "every-suite: max-burst",
        "'max-burst' is not an option of throughput",
        "",
    ),
    (
        campaign({}, published={"name": "x"}),
        "published",
        "a table is not a list",
        "Write its keys below a line [[published]].",
    ),
    (campaign({}, tesbed="x"), "tesbed", "unknown key 'tesbed'", "Did you mean 'testbed'?"),
    (campaign({}, seed=-1), "seed", "-1", ""),
    (campaign({}, seed=2**64), "seed", str(2**64), ""),
    (
        campaign({}, order="random"),
        "order",
        "'random' is not one of in-turn, shuffled",
        'Write "in-turn" or "shuffled".',
    ),
    (
        campaign({}, preset="appendix-b"),
        "preset",
        "there is no preset 'appendix-b'",
        "Did you mean 'appendix-a'?",
    ),
    (campaign({}, preset=3), "preset", "3 is not a text", 'Write it in quotes: "3".'),
    (
        campaign({"host-mode": "fixed", "host_mode": "fixed"}),
        "",
        "'host-mode' is given twice, once with - and once with _",
        "Write it once.",
    ),
    (
        campaign({}, **{"every-suite": {"name": "b"}}),
        "every-suite.name",
        "suites cannot all have the same name",
        "",
    ),
    (campaign({}, **{"every-suite": 3}), "every-suite", "3 is not a table", "[every-suite]"),
    (
        campaign({}, testbed="lab.toml", reference={}),
        "",
        '[reference] describes the DUT of testbed = "reference"',
        "",
    ),
    (
        campaign({}, testbed="reference", reference={"elements": 4}),
        "reference: elements, rate",
        "elements and rate must be given together",
        "",
    ),
    (
        campaign({}, testbed="reference", reference={"table": "0,1,x"}),
        "reference.table",
        "number of an element",
        "",
    ),
    (
        campaign({}, testbed="reference", reference={"elements": 3, "rate": "1kfps", "table": [0, 1, 2]}),
        "reference: table 0,1,2",
        "3 entries",
        "ethtool",
    ),
    (
        campaign({}, testbed="reference", reference={"element": 4}),
        "reference.element",
        "unknown key 'element'",
        "'elements'",
    ),
    (
        campaign({}, reference={"defect": ["luck=1%"]}),
        "reference: defect",
        "'luck=1%' is not a defect",
        "loss",
    ),
    (
        campaign({"hash-types": "type2"}, dut={"hash-types": "type1", "reason": "no ports"}),
        "suite 'a': hash-types",
        "type2: no ports",
        "type1",
    ),
    (campaign({"frame-sizes": 2000}, testbed="reference"), "suite 'a': frame-sizes", "2000", "largest-frame"),
    # From the right it is sent without tags, so all of it counts.
    (
        campaign({"frame-sizes": 1520}, testbed="reference", reference={"vlan": "5,none"}),
        "suite 'a': frame-sizes",
        "1520",
        "largest-frame",
    ),
    (
        campaign({}, published=[{"name": "x", "source": "y", "dut": {"krnl": "z"}}]),
        "published.dut.krnl",
        "unknown key 'krnl'",
        "'kernel'",
    ),
]


def refused(document: dict[str, Any]) -> RequestError:
    with pytest.raises(RequestError) as error:
        expand(make_campaign(document, where="c.toml"))
    return error.value


@pytest.mark.parametrize(
    ("suite", "key", "what", "next_step"),
    BAD_SUITES,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_suite_is_refused_by_its_key(
    suite: dict[str, Any], key: str, what: str, next_step: str
) -> None:
    """R6985-02, SEED-34, SEED-42: nothing of a campaign is measured before all of it can be."""
    error = refused(campaign(suite))
    assert what in error.what
    assert error.where == (SUITE + key).removesuffix(": ")
    assert error.next_step
    assert next_step in error.next_step
    assert "--" not in error.where + error.next_step


@pytest.mark.parametrize(
    ("document", "place", "what", "next_step"),
    BAD_FILES,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_file_is_refused_by_its_place(
    document: dict[str, Any], place: str, what: str, next_step: str
) -> None:
    error = refused(document)
    assert what in error.what
    assert error.where == (f"c.toml: {place}" if place else "c.toml")
    assert error.next_step
    assert next_step in error.next_step


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with raises("base.file-not-readable", match="No such file") as missing:
        read_campaign(tmp_path / "none.toml")
    assert (missing.value.next_step or "").startswith("Name a campaign file; ")
    broken = tmp_path / "broken.toml"
    broken.write_text("name = [")
    with raises("base.not-toml"):
        read_campaign(broken)
    broken.write_bytes(b"name = '\xff'")
    with raises("base.not-toml"):
        read_campaign(broken)


def test_keys_may_be_written_as_in_python() -> None:
    (suite,) = make_campaign(
        campaign({"host_mode": "increment", "hash_types": "type1"}), where="c.toml"
    ).suite
    assert (suite.written("host-mode"), suite.hash_types) == ("increment", ("type1",))


def test_a_file_is_read_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('name = "x"\ntestbed = "lab.toml"\n[[suite]]\nname = "a"\nhosts = 4\n')
    plan = expand(read_campaign(path))
    assert plan.testbed == str(tmp_path / "lab.toml")
    assert [point.hosts for point in plan.points] == [(1, 1), (4, 4)]
    assert (
        expand(make_campaign(campaign({}, testbed="lab:linux"), where="c.toml", folder=tmp_path)).testbed
        == "lab:linux"
    )


def test_a_suite_has_every_option_of_the_verbs() -> None:
    """What can be measured by hand can be measured in a campaign."""
    (suite,) = make_campaign(campaign({}), where="c.toml").suite
    keys = {field.alias for field in type(suite).model_fields.values()}
    names = ("throughput", "loss", "latency", "pdv", "ipdv", "back-to-back", "burst", "recovery")
    assert tuple(PROCEDURES) == names
    for procedure in names:
        options = set(point_defaults(PROCEDURES[procedure]))
        assert options - {"repetitions"} <= keys, procedure

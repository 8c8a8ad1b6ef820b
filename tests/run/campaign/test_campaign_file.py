# SPDX-License-Identifier: Apache-2.0
"""Campaign files: what is wrong is named with its value and place and what to do, before anything is
measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenhand.base.errors import EvenhandError
from evenhand.procedure.registry import PROCEDURES
from evenhand.spec.file import make_campaign, read_campaign
from evenhand.spec.points import expand
from evenhand.spec.request import point_defaults
from tests.errors import raises
from tests.run.campaign.campaigns import campaign

SUITE = "c.toml: suite 'a': "
BAD_SUITES: list[tuple[dict[str, Any], str, str, str, str]] = [
    ({"host": 3}, "host", "base.unknown-key", "'host'", "Did you mean 'hosts'?"),
    ({"hosts": 70000}, "hosts", "plan.count-out-of-range", "1 to 65534", ""),
    ({"hosts": "many"}, "hosts", "spec.not-a-count", "'many'", "Write one number, or two like 100,1"),
    ({"hosts": []}, "hosts", "spec.empty", "", ""),
    ({"hosts": 0}, "hosts", "base.out-of-range", "0", ""),
    ({"hosts": [16, "16,16"]}, "hosts", "spec.listed-twice", "16 hosts", "Write each number once."),
    ({"hosts": [1, "doubling"]}, "hosts", "spec.listed-twice", "1 hosts", "Write each number once."),
    ({"networks": 2}, "networks", "plan.one-network-only", "2 networks", "nets-v4-gateway"),
    ({"plan": "gateway-v7"}, "plan", "plan.unknown-name", "'gateway-v7'", "Did you mean gateway-v6?"),
    ({"plan": "gateway-v4+direct-v6"}, "plan", "plan.mix-of-two-forms", "", "gateway-v4+gateway-v6"),
    ({"mix": "50/50"}, "mix", "spec.mix-of-one-plan", "50/50", "plan gateway-v4+gateway-v6"),
    ({"host-mode": "random"}, "host-mode", "base.not-one-of", "'random'", ""),
    ({"source-ports": "0-5"}, "source-ports", "plan.not-a-port-range", "'0-5'", "1024-65535"),
    ({"host-macs": "pseudorandom"}, "host-macs", "spec.hosts-without-macs", "", "direct-v4-net16"),
    (
        {"frame-sizes": 20},
        "frame-sizes",
        "procedure.frame-size-out-of-range",
        "64 to 9216",
        "Use 64 or more.",
    ),
    (
        {"frame-sizes": [64, "all"]},
        "frame-sizes",
        "procedure.listed-twice",
        "64 octets",
        "Name each size once.",
    ),
    ({"frame-sizes": "imix:aaz"}, "frame-sizes", "plan.imix-size-missing", "size of z", ""),
    (
        {"frame-sizes": "imix:aaafg", "procedure": "back-to-back"},
        "frame-sizes",
        "procedure.mixed-sizes",
        "",
        "",
    ),
    (
        {"frame-sizes": [128, "imix:aaafg"], "procedure": ["throughput", "recovery"]},
        "frame-sizes",
        "procedure.mixed-sizes",
        "IMIX - aaafg",
        "Name single sizes.",
    ),
    ({"procedure": "thruput"}, "procedure", "base.not-one-of", "'thruput'", 'Did you mean "throughput"?'),
    ({"procedure": []}, "procedure", "spec.empty", "", ""),
    ({"procedure": ["loss", "loss"]}, "procedure", "spec.listed-twice", "'loss'", "Write it once."),
    ({"procedure": "latency"}, "rate", "spec.no-load", "latency: ", 'procedure = ["throughput", "latency"]'),
    ({"procedure": "recovery"}, "throughput", "spec.no-load", "recovery: ", 'throughput = "500kfps"'),
    ({"hash-types": "type3"}, "hash-types", "base.not-one-of", "'type3'", ""),
    ({"hash-types": ["type1", "type1"]}, "hash-types", "spec.listed-twice", "'type1'", ""),
    ({"max-burst": "2s"}, "max-burst", "spec.unknown-option", "'max-burst'", "Known here: allow-unreachable"),
    ({"inner-repetitions": 3}, "inner-repetitions", "spec.not-repeating-trials", "", "latency"),
    ({"repetitions": 0}, "repetitions", "base.out-of-range", "0", "Write 1 or more."),
    ({"repetitions": 1001}, "repetitions", "base.out-of-range", "1001", ""),
    ({"repetitions": "10"}, "repetitions", "base.not-whole", "'10'", "Write it without quotes: 10."),
    ({"repetitions": [10]}, "repetitions", "base.not-whole", "[10]", "Write it without brackets: 10."),
    ({"repetitions": 10.0}, "repetitions", "base.not-whole", "10.0", "Write 10."),
    (
        {"fixed-source": "yes"},
        "fixed-source",
        "base.neither-true-nor-false",
        "'yes'",
        "Write it without quotes: true.",
    ),
    (
        {"fixed-source": 0},
        "fixed-source",
        "base.neither-true-nor-false",
        "0",
        "Write true or false, without quotes.",
    ),
    ({"plan": True}, "plan", "base.not-a-text", "true", 'Write it in quotes: "true".'),
    ({"hooks": "make"}, "hooks", "base.not-a-table", "'make'", "Write its keys below a line [suite.hooks]."),
    ({"procedure": "Loss"}, "procedure", "base.not-one-of", "'Loss'", 'Did you mean "loss"?'),
    ({"duration": 5}, "duration", "base.not-a-text", "5", 'Write it in quotes: "5".'),
    ({"duration": "5 parsec"}, "duration", "base.not-a-quantity", "'5 parsec'", "Write a duration like 60"),
    ({"final-duration": "1s"}, "final-duration", "search.durations-contradict", "", "at least as long"),
    ({"precision": "0"}, "precision", "search.out-of-range", "", ""),
    ({"loss-ratio": "100%"}, "loss-ratio", "base.out-of-range", "", ""),
    ({"goal": "NDR"}, "goal", "procedure.one-goal-only", "binary", "search mlr"),
    ({"search": "mlr", "goal": ["NDRR"]}, "goal", "procedure.unknown-goal", "'NDRR'", "Did you mean NDR?"),
    ({"procedure": "loss", "step": "20%"}, "step", "procedure.out-of-range", "20 %", "Use 10% or less."),
    (
        {"procedure": "latency", "rate": "1kfps", "from": "200s"},
        "from",
        "procedure.delays-after-the-end",
        "3 min 20 s",
        "",
    ),
    (
        {"hooks": {"before": "x"}},
        "hooks.before",
        "base.unknown-key",
        "'before'",
        "Did you mean 'before-suite'?",
    ),
    (
        {"hooks": {"before-suite": 5}},
        "hooks.before-suite",
        "base.not-a-text",
        "5",
        'Write it in quotes: "5".',
    ),
    ({"hooks": {"timeout": 5}}, "hooks.timeout", "base.unit-missing", "5", "in quotes, such as 60"),
    ({"hooks": {"before-suite": " "}}, "hooks.before-suite", "spec.empty", "", ""),
]
BAD_FILES: list[tuple[dict[str, Any], str, str, str, str]] = [
    ({"name": "x"}, "suite", "spec.nothing-to-measure", "", "[[suite]]"),
    ({"name": "x", "suite": []}, "suite", "spec.nothing-to-measure", "", "[[suite]]"),
    ({"name": "x", "suite": {"name": "a"}}, "suite", "spec.not-a-table", "", "[[suite]]"),
    ({"name": "x", "suite": [3]}, "suite", "spec.not-a-table", "", "[[suite]]"),
    ({"suite": [{"name": "a"}]}, "name", "base.key-missing", "", "Add it."),
    ({"name": "x", "suite": [{}]}, "suite 1: name", "base.key-missing", "", "Add it."),
    ({"name": "x", "suite": [{"name": "a/b"}]}, "suite 'a/b': name", "base.wrong-value", "'a/b'", ""),
    ({"name": "x", "suite": [{"name": "a"}, {"name": "a"}]}, "", "spec.same-suite-twice", "'a'", ""),
    ({"suite": [{}]}, "", "base.key-missing", "name, suite 1: name", "Add name. Add name to suite 1."),
    ({"name": "x", "suit": [{"name": "a"}]}, "suit", "base.unknown-key", "'suit'", "Did you mean [[suite]]?"),
    (
        {"name": "x", "every_suit": {"hosts": 4}},
        "every_suit",
        "base.unknown-key",
        "'every_suit'",
        "Did you mean [every-suite]?",
    ),
    (
        campaign({}, refxerence={}),
        "refxerence",
        "base.unknown-key",
        "'refxerence'",
        "Did you mean [reference]?",
    ),
    (
        campaign({}, **{"every-suite": {"hots": 3}}),
        "every-suite: hots",
        "base.unknown-key",
        "'hots'",
        "Did you mean 'hosts'?",
    ),
    (
        campaign({}, every_suite={"repetitions": "2"}),
        "every-suite: repetitions",
        "base.not-whole",
        "'2'",
        "without quotes: 2.",
    ),
    (
        campaign({"repetitions": "3"}, **{"every-suite": {"repetitions": 2}}),
        "suite 'a': repetitions",
        "base.not-whole",
        "'3'",
        "3.",
    ),
    (
        campaign({}, **{"every-suite": {"max_burst": "1s"}}),
        "every-suite: max-burst",
        "spec.unknown-option",
        "'max-burst'",
        "",
    ),
    (
        campaign({}, published={"name": "x"}),
        "published",
        "base.not-a-list",
        "",
        "Write its keys below a line [[published]].",
    ),
    (campaign({}, tesbed="x"), "tesbed", "base.unknown-key", "'tesbed'", "Did you mean 'testbed'?"),
    (campaign({}, seed=-1), "seed", "base.out-of-range", "-1", ""),
    (campaign({}, seed=2**64), "seed", "base.out-of-range", str(2**64), ""),
    (
        campaign({}, round_order="random"),
        "round-order",
        "base.not-one-of",
        "'random'",
        'Write "in-turn" or "shuffled".',
    ),
    (
        campaign({}, preset="appendix-b"),
        "preset",
        "spec.no-such-preset",
        "'appendix-b'",
        "Did you mean 'appendix-a'?",
    ),
    (campaign({}, preset=3), "preset", "base.not-a-text", "3", 'Write it in quotes: "3".'),
    ({"preset": 3}, "preset", "spec.no-such-preset", "3", "Write one in quotes: appendix-a"),
    ({"preset": 10**399}, "preset", "spec.no-such-preset", "1000", "Write one in quotes: appendix-a"),
    (
        campaign({"host-mode": "fixed", "host_mode": "fixed"}),
        "",
        "spec.given-twice",
        "'host-mode'",
        "Write it once.",
    ),
    (campaign({}, **{"every-suite": {"name": "b"}}), "every-suite.name", "spec.one-name-for-all", "", ""),
    (campaign({}, **{"every-suite": 3}), "every-suite", "spec.not-a-table", "3", "[every-suite]"),
    (
        campaign({}, testbed="lab.toml", reference={}),
        "",
        "spec.reference-not-here",
        'testbed = "reference"',
        "",
    ),
    (
        campaign({}, testbed="reference", reference={"elements": 4}),
        "reference: elements, rate",
        "spec.only-together",
        "",
        "",
    ),
    (
        campaign({}, testbed="reference", reference={"table": "0,1,x"}),
        "reference.table",
        "spec.not-a-hash-table",
        "'0,1,x'",
        "",
    ),
    (
        campaign({}, testbed="reference", reference={"elements": 3, "rate": "1kfps", "table": [0, 1, 2]}),
        "reference: table 0,1,2",
        "predict.table-size",
        "3 entries",
        "ethtool",
    ),
    (
        campaign({}, testbed="reference", reference={"element": 4}),
        "reference.element",
        "base.unknown-key",
        "'element'",
        "'elements'",
    ),
    (
        campaign({}, reference={"defect": ["luck=1%"]}),
        "reference: defect",
        "spec.not-a-defect",
        "'luck=1%'",
        "loss",
    ),
    (
        campaign({"hash-types": "type2"}, dut_hashing={"hash-types": "type1", "reason": "no ports"}),
        "suite 'a': hash-types",
        "spec.hash-not-settable",
        "type2: no ports",
        "type1",
    ),
    (
        campaign({"frame-sizes": 2000}, testbed="reference"),
        "suite 'a': frame-sizes",
        "spec.frame-too-large",
        "2000",
        "largest-frame",
    ),
    # From the right it is sent without tags, so all of it counts.
    (
        campaign({"frame-sizes": 1520}, testbed="reference", reference={"vlan": "5,none"}),
        "suite 'a': frame-sizes",
        "spec.frame-too-large",
        "1520",
        "largest-frame",
    ),
    (
        campaign({}, published=[{"name": "x", "source": "y", "dut": {"krnl": "z"}}]),
        "published.dut.krnl",
        "base.unknown-key",
        "'krnl'",
        "'kernel'",
    ),
]


def refused(document: dict[str, Any], code: str) -> EvenhandError:
    with raises(code) as error:
        expand(make_campaign(document, where="c.toml"))
    return error.value


@pytest.mark.parametrize(
    ("suite", "key", "code", "named", "next_step"),
    BAD_SUITES,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_suite_is_refused_by_its_key(
    suite: dict[str, Any], key: str, code: str, named: str, next_step: str
) -> None:
    """R6985-02, SEED-34, SEED-42: nothing of a campaign is measured before all of it can be."""
    error = refused(campaign(suite), code)
    assert named in error.what
    assert error.where == (SUITE + key).removesuffix(": ")
    assert error.next_step
    assert next_step in error.next_step
    assert "--" not in error.where + error.next_step


@pytest.mark.parametrize(
    ("document", "place", "code", "named", "next_step"),
    BAD_FILES,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_file_is_refused_by_its_place(
    document: dict[str, Any], place: str, code: str, named: str, next_step: str
) -> None:
    error = refused(document, code)
    assert named in error.what
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
    for procedure in PROCEDURES:
        options = set(point_defaults(PROCEDURES[procedure]))
        assert options - {"repetitions"} <= keys, procedure

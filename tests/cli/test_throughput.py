# SPDX-License-Identifier: Apache-2.0
"""`evenhand throughput` and `evenhand trial`: from a testbed file to a stored result; bad input starts
nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.run import read_run
from tests.cli.running import TESTBED, Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]
QUICK = ("--maximum-rate", "1Mfps", "--duration", "1s", "--final-duration", "2s", "--waits", "short")


def test_a_search_is_found_shown_and_stored(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """R2544-21, R2544-23, D11."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    ended = evenhand("throughput", testbed, *QUICK, "--run", run)
    assert ended.code == 0, ended.err
    assert "fps per direction" in ended.out
    assert "UDP over IPv4" in ended.out
    assert "Stored in" in ended.out
    assert "Loads are per direction" in ended.err
    assert "trial 1: 1 Mfps for" in ended.err
    stored = read_run(run)
    (search,) = stored.searches
    assert search.outcome == "found"
    assert search.result is not None
    assert 640_000 * 0.995 < search.result["throughput_fps_per_direction"] <= 640_000
    assert stored.versions["dpdk"] == "22.11.11"
    assert search.setup["testbed"]["left"]["device"] == "net_ring0"
    assert stored.finished_at is not None


def test_a_port_that_stopped_is_opened_anew_and_the_search_goes_on(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """The trial is INVALID, and no other one meets that port."""
    engine_playing("port-stops")
    run = tmp_path / "a.evenhand"
    ended = evenhand("throughput", testbed, *QUICK, "--run", run)
    assert ended.code == 0, ended.err
    assert "A port of the tester had stopped: the engine was restarted" in ended.err
    (search,) = read_run(run).searches
    assert search.outcome == "found"
    requests = [json.loads(line)["request"] for line in (tmp_path / "engine-requests.jsonl").open()]
    after = requests.index("trial") + 2
    assert requests[after : after + 4] == ["about", "open", "resolve", "trial"]


def test_both_directions_send_unless_one_way(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    """R5180-13, R2544-15: the default is both directions at the same rate."""
    engine_playing("simulated-640000")
    document = evenhand("throughput", testbed, *QUICK, "--json", "--no-run").json
    assert document["directions"] == ["forward", "reverse"]
    assert all(list(t["result"]["directions"]) == ["forward", "reverse"] for t in document["trials"])


def test_json_is_one_document_and_progress_goes_to_stderr(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    engine_playing("simulated-640000")
    ended = evenhand(
        "throughput", testbed, *QUICK, "--json", "--loss-ratio", "0.5%", "--direction", "forward"
    )
    document = ended.json
    assert document["outcome"] == "found"
    assert document["goal"]["loss_ratio"] == 0.005
    assert document["directions"] == ["forward"]
    assert all(list(t["result"]["directions"]) == ["forward"] for t in document["trials"])
    assert "trial 1" in ended.err


def test_the_line_rate_of_the_file_is_the_maximum(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    """MLR-13, R2544-16: the engine here tells 10 Gbit/s."""
    engine_playing("fair")
    ended = evenhand("throughput", testbed, "--maximum-rate", "14880953fps")
    assert ended.code == 2
    assert ended.error.code == "rig.above-line-rate"
    assert "14,880,952 fps" in ended.error.what


@pytest.mark.parametrize("verdict", ["640000", "10"])
def test_a_single_trial_is_shown_in_full_and_loss_is_no_error(
    evenhand: Run, engine_playing: Play, testbed: Path, verdict: str, tmp_path: Path
) -> None:
    engine_playing(f"simulated-{verdict}")
    run = tmp_path / "a.evenhand"
    ended = evenhand(
        "trial",
        testbed,
        "--rate",
        "1kfps",
        "--duration",
        "1s",
        "--waits",
        "rfc",
        "--wait-restabilize",
        "0s",
        "--run",
        run,
    )
    assert ended.code == 0
    assert ("PASS" if verdict == "640000" else "FAIL") in ended.out
    (search,) = read_run(run).searches
    assert search.kind == "trial"
    assert search.setup["waits"] == {
        "after_routing_s": 2,
        "after_learning_s": 2,
        "residual_s": 2,
        "restabilize_s": 0,
    }
    assert evenhand("trial", testbed, "--rate", "1kfps", "--json").json["trial"]["intended_fps"] == 1000


@pytest.mark.parametrize(
    ("options", "code", "where"),
    [
        (("--maximum-rate", "1Mpixels"), "base.not-a-quantity", "--maximum-rate"),
        (("--duration", "10s", "--final-duration", "5s"), "search.durations-contradict", "--final-duration"),
        (("--precision", "0"), "search.out-of-range", "--precision"),
        (("--loss-ratio", "100%"), "base.out-of-range", "--loss-ratio"),
        (("--frame-size", "63"), "procedure.frame-size-out-of-range", "--frame-size"),
        (("--plan", "gateway-v5"), "plan.unknown-name", "--plan"),
        (("--wait-residual", "soon"), "base.not-a-quantity", "--wait-residual"),
        (("--minimum-rate", "2Mfps", "--maximum-rate", "1Mfps"), "search.out-of-range", "--minimum-rate"),
    ],
)
def test_bad_options_start_no_engine(
    evenhand: Run,
    engine_playing: Play,
    testbed: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    code: str,
    where: str,
) -> None:
    engine_playing("fair")
    ended = evenhand("throughput", testbed, *options)
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert not (tmp_path / "engine-was-started").exists()


@pytest.mark.parametrize(
    ("old", "new", "exit_code", "code"),
    [
        ("isolated_test_environment = true", "", 2, "rig.isolation-not-confirmed"),
        ("cpus", "cpu", 2, "base.unknown-key"),
        ("net_ring0", "net_af_packet0,iface=nothing0", 3, "rig.port-missing"),
        ("net_ring0", "0000:ff:1f.7", 3, "rig.port-missing"),
    ],
)
def test_a_bad_testbed_starts_no_engine(
    evenhand: Run,
    engine_playing: Play,
    testbed: Path,
    tmp_path: Path,
    old: str,
    new: str,
    exit_code: int,
    code: str,
) -> None:
    """SEED-80, R6815-01."""
    engine_playing("fair")
    testbed.write_text(TESTBED.replace(old, new))
    for line in (("throughput", testbed, "--maximum-rate", "1Mfps"), ("trial", testbed, "--rate", "1kfps")):
        ended = evenhand(*line)
        assert (ended.code, ended.error.code) == (exit_code, code)
    assert not (tmp_path / "engine-was-started").exists()


@pytest.mark.parametrize("written", ["gateway-v4", "gateway_v4"])
def test_a_plan_that_the_dut_is_not_set_up_for_starts_no_engine(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, written: str
) -> None:
    """Without it the DUT would only not answer, and nothing would say why."""
    engine_playing("fair")
    testbed.write_text(TESTBED + f'[dut]\nplan = "{written}"\n')
    for line in (
        ("throughput", testbed, "--maximum-rate", "1Mfps"),
        ("trial", testbed, "--rate", "1kfps"),
        ("learn", testbed),
    ):
        ended = evenhand(*line, "--plan", "gateway-v6")
        assert ended.code == 2
        assert ended.error.code == "rig.dut-of-other-plan"
        assert "gateway-v4, not for gateway-v6" in ended.error.what
    assert not (tmp_path / "engine-was-started").exists()
    assert evenhand("trial", testbed, "--rate", "1kfps", "--duration", "1s", "--waits", "short").code == 0


def test_a_rate_above_the_line_rate_of_the_file_starts_no_engine(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """R2544-16."""
    engine_playing("fair")
    testbed.write_text(TESTBED.replace("[right]", 'line_rate = "1Gbps"\n[right]'))
    for line in (
        ("throughput", testbed, "--maximum-rate", "1.5Mfps"),
        ("trial", testbed, "--rate", "1.5Mfps"),
    ):
        ended = evenhand(*line)
        assert ended.code == 2
        assert ended.error.code == "rig.above-line-rate"
        assert "1,488,095 fps" in ended.error.what
    assert not (tmp_path / "engine-was-started").exists()


def test_a_run_is_not_overwritten_and_nothing_is_measured(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    engine_playing("simulated-1")
    run = tmp_path / "a.evenhand"
    run.write_text("precious")
    ended = evenhand("throughput", testbed, *QUICK, "--run", run)
    assert ended.code == 2
    assert run.read_text() == "precious"
    assert not (tmp_path / "engine-was-started").exists()


def test_a_fault_of_the_host_is_3(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    engine_playing("fault-host_not_ready")
    ended = evenhand("throughput", testbed, *QUICK)
    assert ended.code == 3
    assert (ended.error.code, ended.error.where) == ("engine.no-device", "left.device")


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_one_pair_is_never_published_as_many_addresses(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str
) -> None:
    """SEED-40, SEED-49: `--host-mode fixed` was shown, and stored, as 65,534 x 65,534 addresses."""
    engine_playing("simulated-640000")
    for number, options in enumerate((("--host-mode", "fixed"), ("--hosts", "1"))):
        run = tmp_path / f"{number}.evenhand"
        ended = evenhand("throughput", testbed, *QUICK, "--plan", plan, *options, "--run", run)
        assert "1 address pair" in ended.out
        assert "65,53" not in ended.out
        assert read_run(run).searches[0].setup["traffic"]["is_one_pair"] is True
    document = evenhand(
        "throughput", testbed, *QUICK, "--plan", plan, "--host-mode", "fixed", "--json", "--no-run"
    ).json
    assert document["hosts"] == {"left": 1, "right": 1}
    assert document["traffic"]["directions"]["forward"]["pairs"] == 1
    trial = evenhand(
        "trial",
        testbed,
        "--rate",
        "1kfps",
        "--duration",
        "1s",
        "--waits",
        "short",
        "--plan",
        plan,
        "--host-mode",
        "fixed",
    )
    assert "1 address pair" in trial.out
    assert "65,53" not in trial.out


@pytest.mark.parametrize(
    ("plan", "networks"), [("nets-v4-single-host", "198.18.255.2"), ("nets-v6-gateway", "2001:2:0:ff::2")]
)
def test_every_verb_states_what_was_sent(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str, networks: str
) -> None:
    """SEED-36, SEED-49, R4814-01: modes, networks, ports, MACs, gateways, routes and seed, as text and as a
    document."""
    engine_playing("simulated-640000")
    options = (
        "--plan",
        plan,
        "--hosts",
        "1",
        "--fixed-source",
        "--seed",
        "77",
        "--waits",
        "short",
        "--no-learning",
    )
    searched = (
        "throughput",
        testbed,
        "--maximum-rate",
        "1Mfps",
        "--duration",
        "1s",
        "--final-duration",
        "1s",
        *options,
    )
    tried = ("trial", testbed, "--rate", "1kfps", "--duration", "1s", *options)
    for line in (searched, tried):
        text = evenhand(*line, *(("--no-run",) if line is searched else ())).out
        for said in (
            "1 source x 256 destination addresses in 1 x 256 networks",
            networks,
            "seed 77",
            "source 1024-65535",
            "02:00:00:00:00:01",
        ):
            assert said in text
        assert ("derived from Figures 3 and 5" in text) == plan.endswith("gateway")
        document = evenhand(*line, "--json", *(("--no-run",) if line is searched else ())).json
        traffic = document["traffic"]
        assert (document["seed"], document["is_derived"]) == (77, plan.endswith("gateway"))
        assert traffic["directions"]["reverse"]["source"]["addresses"] == 1
        assert traffic["directions"]["reverse"]["destination"]["networks"] == 256
        assert traffic["directions"]["forward"]["destination"]["network_mode"] == "pseudorandom"
        assert traffic["fixed_source"] is True
        assert traffic["udp_ports"]["destination"] == {"first": 1, "last": 49151, "mode": "pseudorandom"}
        assert traffic["macs"]["left"]["dut"] == "02:00:00:00:00:aa"
        assert (traffic["gateways"]["left"] is None) == (plan == "nets-v4-single-host")
        assert (traffic["dut_routes"]["left"] or {"count": 0})["count"] == (
            256 if plan.endswith("gateway") else 0
        )
    learnt = evenhand("learn", testbed, "--plan", plan, "--hosts", "1")
    assert plan in learnt.out
    assert "02:00:00:00:00:01" in learnt.out


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_fixed_ports_are_asked_for_and_told(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, plan: str
) -> None:
    """SEED-46, SEED-49, R2544-31: in the request of the engine, in the result, in the run file."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    options = ("--plan", plan, "--source-ports", "fixed", "--destination-ports", "7")
    ended = evenhand("throughput", testbed, *QUICK, *options, "--run", run)
    assert "source 49184 (fixed), destination 7 (fixed)" in ended.out
    (search,) = read_run(run).searches
    assert search.plan["udp_ports"]["source"] == {"first": 49184, "last": 49184, "mode": "fixed"}
    assert search.setup["traffic"]["udp_ports"]["destination"] == {"first": 7, "last": 7, "mode": "fixed"}


def test_a_result_tells_the_facts_of_the_dut_and_names_those_that_are_missing(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """SEED-81, SEED-84, RSS-02, RSS-05: written by the user, recorded, judged by nobody (SEED-07)."""
    engine_playing("simulated-640000")
    told = (
        '[dut.facts]\nsystem = "OpenBSD 7.6"\nflow_hash = "sd/sd, symmetric"\npolicing = "pf, 100,000'
        ' states"\n'
    )
    plain = evenhand("throughput", testbed, *QUICK, "--no-run")
    assert (
        "Not stated for the DUT ([dut.facts] in the testbed file): machine, system, kernel, cpu model,"
        " sockets, cores, clock" in plain.out
    )
    testbed.write_text(TESTBED + told)
    run = tmp_path / "a.evenhand"
    shown = evenhand("throughput", testbed, *QUICK, "--run", run).out
    assert (
        "DUT, according to the testbed file: system: OpenBSD 7.6; flow hash: sd/sd, symmetric; policing:"
        " pf, 100,000 states." in shown
    )
    assert "Not stated for the DUT ([dut.facts] in the testbed file): machine, kernel, cpu model" in shown
    stored = read_run(run).searches[0].setup["testbed"]["dut"]["facts"]
    assert (stored["policing"], stored["flow_hash"]) == ("pf, 100,000 states", "sd/sd, symmetric")
    document = evenhand("throughput", testbed, *QUICK, "--no-run", "--json").json
    assert document["dut_facts"]["system"] == "OpenBSD 7.6"
    assert document["dut_facts"]["kernel"] is None
    testbed.write_text(TESTBED + told.replace("policing", "policer"))
    refused = evenhand("throughput", testbed, *QUICK, "--no-run")
    assert refused.code == 2
    assert refused.error.code == "base.unknown-key"
    assert "'policing'" in refused.error.next_step

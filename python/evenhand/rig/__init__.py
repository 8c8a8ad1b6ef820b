# SPDX-License-Identifier: Apache-2.0
"""Rig, between search and procedure: what is measured with and measured on. Later rooms know it by these
names alone; `rig.py` says what a testbed is before it is open, `setup.py` when it is."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.dut.facts import READ_THERE
    from evenhand.dut.ssh import ssh_command
    from evenhand.host.devices import PortFacts
    from evenhand.host.finding import Part, State, read_host_facts, read_versions
    from evenhand.host.known_ceilings import KnownCeiling, find_ceiling, keep_ceiling
    from evenhand.host.survey import HostSurvey
    from evenhand.lab.borrow import LabWish
    from evenhand.lab.build import USUAL_MAX_FRAME_SIZE
    from evenhand.lab.nft import MOST_RULES
    from evenhand.reference import (
        DEFAULT_QUEUE_FRAMES,
        DEFECT_KINDS,
        MAX_ROUTER_ELEMENTS,
        Defects,
        NeighborCost,
        ReferenceDut,
    )
    from evenhand.rig.dut_wish import APPLIED, DutChange, DutWish, ReachableDut
    from evenhand.rig.facts import campaign_facts, testbed_facts, tester_facts
    from evenhand.rig.inside import Inside
    from evenhand.rig.lab_lease import LeasedLab
    from evenhand.rig.lab_rig import LabSetup, make_lab_setup
    from evenhand.rig.reference_rig import REFERENCE, make_reference_setup
    from evenhand.rig.registry import default_plan_of, plan_defaults_of, read_dut, read_setup, rig_of
    from evenhand.rig.rig import Demand, PlanDefaults, Rig, RigFacts
    from evenhand.rig.setup import DEFAULT_PLAN, Setup, put_back
    from evenhand.rig.testbed_rig import make_own_loop_setup, own_loop_setup
    from evenhand.testbed import (
        DutFacts,
        Testbed,
        TestbedDut,
        TestbedEngine,
        TestbedLimits,
        Tester,
        check_rate,
        make_testbed,
        read_device,
        read_testbed,
    )
    from evenhand.testbed.drivers import FILL_IN, PCI
    from evenhand.testbed.tunnel import Tunnel, tunnel_octets
    from evenhand.testbed.values import TAG_OCTETS, Vlans, VlansOfSides, parse_vlans, show_vlans, tag_octets
    from evenhand.testbed.workers import check_destination
else:
    from evenhand.base.lazy_import import lazy_names

    # The same, each loaded when it is first used: most verbs need a few of them.
    __getattr__ = lazy_names(
        __name__,
        {
            "evenhand.dut.facts": ("READ_THERE",),
            "evenhand.dut.ssh": ("ssh_command",),
            "dut_wish": ("APPLIED", "DutChange", "DutWish", "ReachableDut"),
            "facts": ("campaign_facts", "testbed_facts", "tester_facts"),
            "evenhand.host.finding": ("Part", "State", "read_host_facts", "read_versions"),
            "evenhand.host.known_ceilings": ("KnownCeiling", "find_ceiling", "keep_ceiling"),
            "evenhand.host.devices": ("PortFacts",),
            "evenhand.host.survey": ("HostSurvey",),
            "inside": ("Inside",),
            "evenhand.lab.borrow": ("LabWish",),
            "evenhand.lab.build": ("USUAL_MAX_FRAME_SIZE",),
            "evenhand.lab.nft": ("MOST_RULES",),
            "lab_lease": ("LeasedLab",),
            "lab_rig": ("LabSetup", "make_lab_setup"),
            "testbed_rig": ("own_loop_setup", "make_own_loop_setup"),
            "evenhand.reference": (
                "DEFAULT_QUEUE_FRAMES",
                "DEFECT_KINDS",
                "Defects",
                "MAX_ROUTER_ELEMENTS",
                "NeighborCost",
                "ReferenceDut",
            ),
            "reference_rig": ("REFERENCE", "make_reference_setup"),
            "registry": ("default_plan_of", "plan_defaults_of", "read_dut", "read_setup", "rig_of"),
            "rig": ("Demand", "PlanDefaults", "Rig", "RigFacts"),
            "setup": ("DEFAULT_PLAN", "Setup", "put_back"),
            "evenhand.testbed": (
                "DutFacts",
                "Testbed",
                "TestbedDut",
                "TestbedEngine",
                "TestbedLimits",
                "Tester",
                "check_rate",
                "make_testbed",
                "read_device",
                "read_testbed",
            ),
            "evenhand.testbed.drivers": ("FILL_IN", "PCI"),
            "evenhand.testbed.workers": ("check_destination",),
            "evenhand.testbed.tunnel": ("Tunnel", "tunnel_octets"),
            "evenhand.testbed.values": (
                "TAG_OCTETS",
                "Vlans",
                "VlansOfSides",
                "parse_vlans",
                "show_vlans",
                "tag_octets",
            ),
        },
    )

__all__ = [
    "APPLIED",
    "DEFAULT_PLAN",
    "DEFAULT_QUEUE_FRAMES",
    "DEFECT_KINDS",
    "FILL_IN",
    "MAX_ROUTER_ELEMENTS",
    "MOST_RULES",
    "PCI",
    "READ_THERE",
    "REFERENCE",
    "TAG_OCTETS",
    "USUAL_MAX_FRAME_SIZE",
    "Defects",
    "Demand",
    "DutChange",
    "DutFacts",
    "DutWish",
    "HostSurvey",
    "Inside",
    "KnownCeiling",
    "LabSetup",
    "LabWish",
    "LeasedLab",
    "NeighborCost",
    "Part",
    "PlanDefaults",
    "PortFacts",
    "ReachableDut",
    "ReferenceDut",
    "Rig",
    "RigFacts",
    "Setup",
    "State",
    "Testbed",
    "TestbedDut",
    "TestbedEngine",
    "TestbedLimits",
    "Tester",
    "Tunnel",
    "Vlans",
    "VlansOfSides",
    "campaign_facts",
    "check_destination",
    "check_rate",
    "default_plan_of",
    "find_ceiling",
    "keep_ceiling",
    "make_lab_setup",
    "make_own_loop_setup",
    "make_reference_setup",
    "make_testbed",
    "own_loop_setup",
    "parse_vlans",
    "plan_defaults_of",
    "put_back",
    "read_device",
    "read_dut",
    "read_host_facts",
    "read_setup",
    "read_testbed",
    "read_versions",
    "rig_of",
    "show_vlans",
    "ssh_command",
    "tag_octets",
    "testbed_facts",
    "tester_facts",
    "tunnel_octets",
]

# SPDX-License-Identifier: Apache-2.0
"""Rig, between search and procedure: what is measured with and measured on. Later rooms know it by these
names alone; `rig.py` says what a testbed is before it is open, `setup.py` when it is."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.rig.dut.facts import READ_THERE
    from evenhand.rig.dut.ssh_command import ssh_command
    from evenhand.rig.dut_wish import APPLIED, DutChange, DutWish, ReachableDut
    from evenhand.rig.facts import campaign_facts, testbed_facts, tester_facts
    from evenhand.rig.host.facts import read_host_facts, read_versions
    from evenhand.rig.host.finding import Part, State
    from evenhand.rig.host.known_ceilings import KnownCeiling, find_ceiling, keep_ceiling
    from evenhand.rig.host.ports import PortFacts
    from evenhand.rig.host.survey import HostSurvey
    from evenhand.rig.inside import Inside
    from evenhand.rig.lab.borrow import LabWish
    from evenhand.rig.lab.build import USUAL_MAX_FRAME_SIZE
    from evenhand.rig.lab.firewall import MOST_RULES
    from evenhand.rig.lab_lease import LeasedLab
    from evenhand.rig.lab_rig import LabSetup, make_lab_setup
    from evenhand.rig.looped import looped_setup, make_looped_setup
    from evenhand.rig.reference import (
        DEFAULT_QUEUE_FRAMES,
        DEFECT_KINDS,
        MAX_ROUTER_ELEMENTS,
        Defects,
        NeighborCost,
        ReferenceDut,
    )
    from evenhand.rig.reference_rig import REFERENCE, make_reference_setup
    from evenhand.rig.registry import default_plan_of, plan_defaults_of, read_dut, read_setup, rig_of
    from evenhand.rig.rig import Demand, PlanDefaults, Rig, RigFacts
    from evenhand.rig.setup import DEFAULT_PLAN, Setup, put_back
    from evenhand.rig.testbed import (
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
    from evenhand.rig.testbed.drivers import FILL_IN, PCI
    from evenhand.rig.testbed.ssh_destination import check_destination
    from evenhand.rig.testbed.vlan import TAG_OCTETS, Vlans, VlansOfSides, parse_vlans, show_vlans, tag_octets
else:
    from evenhand.base.lazy_names import lazy_names

    # The same, each loaded when it is first used: most verbs need a few of them.
    __getattr__ = lazy_names(
        __name__,
        {
            "dut.facts": ("READ_THERE",),
            "dut.ssh_command": ("ssh_command",),
            "dut_wish": ("APPLIED", "DutChange", "DutWish", "ReachableDut"),
            "facts": ("campaign_facts", "testbed_facts", "tester_facts"),
            "host.facts": ("read_host_facts", "read_versions"),
            "host.finding": ("Part", "State"),
            "host.known_ceilings": ("KnownCeiling", "find_ceiling", "keep_ceiling"),
            "host.ports": ("PortFacts",),
            "host.survey": ("HostSurvey",),
            "inside": ("Inside",),
            "lab.borrow": ("LabWish",),
            "lab.build": ("USUAL_MAX_FRAME_SIZE",),
            "lab.firewall": ("MOST_RULES",),
            "lab_lease": ("LeasedLab",),
            "lab_rig": ("LabSetup", "make_lab_setup"),
            "looped": ("looped_setup", "make_looped_setup"),
            "reference": (
                "DEFAULT_QUEUE_FRAMES",
                "DEFECT_KINDS",
                "MAX_ROUTER_ELEMENTS",
                "Defects",
                "NeighborCost",
                "ReferenceDut",
            ),
            "reference_rig": ("REFERENCE", "make_reference_setup"),
            "registry": ("default_plan_of", "plan_defaults_of", "read_dut", "read_setup", "rig_of"),
            "rig": ("Demand", "PlanDefaults", "Rig", "RigFacts"),
            "setup": ("DEFAULT_PLAN", "Setup", "put_back"),
            "testbed": (
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
            "testbed.drivers": ("FILL_IN", "PCI"),
            "testbed.ssh_destination": ("check_destination",),
            "testbed.vlan": (
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
    "Vlans",
    "VlansOfSides",
    "campaign_facts",
    "check_destination",
    "check_rate",
    "default_plan_of",
    "find_ceiling",
    "keep_ceiling",
    "looped_setup",
    "make_lab_setup",
    "make_looped_setup",
    "make_reference_setup",
    "make_testbed",
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
]

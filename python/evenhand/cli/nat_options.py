# SPDX-License-Identifier: Apache-2.0
"""Options of a DUT's set-up: the hash of its NICs, its neighbours, and how it translates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, get_args

import typer

from evenhand.base.errors import RequestError
from evenhand.base.option import Grammar, Option
from evenhand.dut import Translator
from evenhand.dut.nat import USUAL_NAT, NatAddresses, NatPorts, NatWishes
from evenhand.spec.request import HashType

TranslatorOption = Annotated[
    Translator | None,
    typer.Option(
        "--translator",
        metavar="|".join(get_args(Translator)),
        help="The translator of a Linux DUT, or of the lab vm, for siit, siit-eam or nat64. Default: tayga.",
    ),
]
NatPortsOption = Annotated[
    NatPorts | None,
    typer.Option(
        "--nat-ports",
        metavar="kept|random",
        help="Ports that the NAT gives to connections (nat44, nat64, nat66). kept: the host's port, unless it"
        " is taken (default); random: a random port.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NatOptions:
    """What the user may choose of a NAT that is set up over SSH or by a script."""

    nat_ports: NatPortsOption = None
    nat_addresses: Annotated[
        NatAddresses | None,
        typer.Option(
            "--nat-addresses",
            metavar="paired|one",
            help="Addresses that the NAT gives to hosts. paired: to each host its own address of the pool"
            " (default); one: the pool's first address to all hosts, as with masquerading.",
        ),
    ] = None
    nat_table: Annotated[
        int | None,
        typer.Option(
            "--nat-table",
            metavar="N",
            min=1,
            max=2**31 - 2**14,
            help="Maximum number of connections in the NAT's table, which has a bucket for each. Default: the"
            " DUT's own setting.",
        ),
    ] = None

    def read(self) -> NatWishes:
        """The wishes in the form that the DUT is set up with."""
        return NatWishes(
            ports=self.nat_ports or USUAL_NAT.ports,
            addresses=self.nat_addresses or USUAL_NAT.addresses,
            table_size=self.nat_table,
        )


def parse_hash_type(text: str, *, where: str) -> HashType:
    """RequestError if it is none."""
    match text:
        case "type1" | "type2":
            return text
    raise RequestError(
        f"{text!r} is not a hash type",
        code="cli.not-a-hash-type",
        where=where,
        next_step="Use type1 (addresses) or type2 (addresses and UDP ports).",
    )


NIC_HASH = Grammar("type1|type2", parse_hash_type)
NicHashOption = Annotated[
    str | None,
    Option(
        declared="--hash",
        grammar=NIC_HASH,
        help="Hash of the DUT's NICs: addresses, or addresses and UDP ports (Linux). Default: unchanged.",
    ),
]
StaticNeighborsOption = Annotated[
    str | None,
    Option(
        metavar="MAC,MAC",
        help="MACs of the tester's left and right port, for a DUT that must not resolve its neighbours. With"
        " several engines (dut apply): one pair after the other.",
    ),
]


def read_hash_type(written: str | None) -> HashType | None:
    """`--hash`; None if it is not given."""
    return None if written is None else parse_hash_type(written, where="--hash")

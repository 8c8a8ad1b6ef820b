# SPDX-License-Identifier: Apache-2.0
"""The exact load of each element, over all source x destination x port combinations of a plan.

The hash is an XOR of what each independent field contributes. So the number of combinations that end at each
value of the hash's low bits is the XOR convolution of one small histogram per field, and the Walsh-Hadamard
transform turns that convolution into a product. The work grows with the number of values of the fields, not
with the number of their combinations.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce
from math import lcm, prod
from typing import TYPE_CHECKING, Any, NamedTuple

from evenhand.base.errors import PlanError
from evenhand.base.lazy_import import lazy_import
from evenhand.plan import (
    BOTH_DIRECTIONS,
    Address,
    AddressPlan,
    Direction,
    Flow,
    Mode,
    check_flow_directions,
    flows_in,
    receiving_side,
    sending_side,
)
from evenhand.plan.host_list import HostList, Hosts, countable
from evenhand.plan.prefixes import WIDTH
from evenhand.predict.flow_fields import (
    ADDRESSES,
    PORTS,
    WORD_BITS,
    Counts,
    FlowPatterns,
    TogetherField,
    contributions,
    key_window,
    walsh_hadamard,
)
from evenhand.predict.host_lists import ListField
from evenhand.predict.model import DeviceModel

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_import("numpy")


def hash_octets(key: bytes, octets: bytes) -> int:
    """The hash of one input, bit by bit as the verification suite defines it; 32 bits."""
    result = 0
    for bit_offset in range(8 * len(octets)):
        if octets[bit_offset // 8] >> (7 - bit_offset % 8) & 1:
            result ^= key_window(key, bit_offset)
    return result


def hash_input(model: DeviceModel, source: Address, destination: Address, ports: Sequence[int] = ()) -> bytes:
    """What the device hashes of one frame. `ports` are source and destination port; type 1 does not read them
    (RSS-01)."""
    parts = [(source.packed, destination.packed)]
    if model.hash_type == "type2":
        source_port, destination_port = ports
        parts.append((source_port.to_bytes(2, "big"), destination_port.to_bytes(2, "big")))
    if model.symmetric:
        parts = [(mixed, mixed) for mixed in (_xor(a, b) for a, b in parts)]
    return b"".join(a + b for a, b in parts)


def element_of(
    model: DeviceModel, source: Address | str, destination: Address | str, ports: Sequence[int] = ()
) -> int:
    """The element that gets this frame: its hash, the low bits of that, and the table (RSS-04)."""
    octets = hash_input(model, ipaddress.ip_address(source), ipaddress.ip_address(destination), ports)
    return model.table[hash_octets(model.key, octets) & (len(model.table) - 1)]


def _xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


_NETWORK_WORD = 1
"""Where `_address_words` has that of the network, if there are networks."""


class _Word(NamedTuple):
    """A 16-bit word of an address, or a port."""

    octet: int
    """Octet at which it begins."""
    values: range
    gap: int = 0
    """Octets between its two."""


class TupleField(NamedTuple):
    """A 16-bit word of the hash input, or the part of one that varies by itself."""

    bit_offsets: tuple[int, ...]
    """Bit offsets at which it begins; twice with a symmetric hash."""
    values: range
    """All equally likely, whatever the other fields are. One value: a constant."""
    gap: int = 0
    """Octets between its two."""

    @property
    def combinations(self) -> int:
        """Sum of the histogram."""
        return len(self.values)

    def spectrum(self, key: bytes, size: int) -> Counts:
        """Transform of the histogram of what the field contributes to the low bits of the hash; int64."""
        return _spectrum(key, self, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a device makes of a plan, in the long run: every combination of field values equally often
    (SEED-40)."""

    plan: AddressPlan
    model: DeviceModel
    combinations: int
    """Number of combinations of the field values that the device hashes, in each direction. Where the
    directions have unlike numbers (a fixed source and unlike sides), their least common multiple: each
    combination of a direction then counts several times, and the directions weigh the same. So it is with
    flows, each of which weighs as much as its share."""
    counts: dict[Direction, tuple[int, ...]]
    """How many of the combinations each element gets, per direction; exact."""

    @property
    def directions(self) -> tuple[Direction, ...]:
        return tuple(self.counts)

    def loads(self, direction: Direction) -> tuple[Fraction, ...]:
        """Share of the direction's frames for each element; the sum is 1."""
        return tuple(Fraction(count, self.combinations) for count in self.counts[direction])

    def only(self, direction: Direction) -> Prediction:
        """The same with this direction alone."""
        return replace(self, counts={direction: self.counts[direction]})

    @property
    def total_counts(self) -> tuple[int, ...]:
        """Counts of all directions together: the elements serve both."""
        return tuple(sum(counts) for counts in zip(*self.counts.values(), strict=True))

    @property
    def busiest_to_mean(self) -> Fraction:
        """Load of the busiest element relative to the mean over all elements; 1 is even (RSS-06)."""
        return Fraction(max(self.total_counts) * self.model.elements, self.combinations * len(self.counts))

    @property
    def share_of_plateau(self) -> Fraction:
        """Throughput relative to that of an even load: the busiest element is the first that loses frames."""
        return 1 / self.busiest_to_mean

    @property
    def busy_elements(self) -> int:
        """Elements that get any load."""
        return sum(count > 0 for count in self.total_counts)

    @property
    def plateau_fps(self) -> float | None:
        """Throughput per direction if all elements had the same load; None without `rate_fps`."""
        rate_fps = self.model.rate_fps
        return None if rate_fps is None else rate_fps * self.model.elements / len(self.counts)

    @property
    def throughput_fps(self) -> float | None:
        """Highest load per direction at which no element gets more than `rate_fps`; None without it."""
        return None if self.plateau_fps is None else self.plateau_fps * float(self.share_of_plateau)

    @property
    def host_counts(self) -> dict[str, int]:
        """Hosts of each network of a side; of a list of networks, all of them, exactly."""
        ranges = {side.name: side.host_range for side in self.plan.sides}
        return {
            name: each.address_count if each.network_count == 1 else each.count
            for name, each in ranges.items()
        }

    def to_document(self) -> dict[str, Any]:
        return {
            "hosts": {side: countable(count) for side, count in self.host_counts.items()},
            "networks": self.plan.networks.to_document(),
            "directions": list(self.directions),
            "combinations": self.combinations,
            "counts": {direction: list(counts) for direction, counts in self.counts.items()},
            "busiest_to_mean": float(self.busiest_to_mean),
            "share_of_plateau": float(self.share_of_plateau),
            "busy_elements": self.busy_elements,
            "throughput_fps_per_direction": self.throughput_fps,
            "plateau_fps_per_direction": self.plateau_fps,
        }


def predict(
    plan: AddressPlan, model: DeviceModel, directions: Sequence[Direction] = BOTH_DIRECTIONS
) -> Prediction:
    """Exact loads of all elements.

    Raises:
        PlanError: Two fields count up or down together, so that their combinations are not independent; or a
            plan with flows has none of a direction.
    """
    check_flow_directions(plan.flows, directions)
    counted = {direction: _of_flows(plan, model, direction) for direction in directions}
    common = lcm(*(combinations for combinations, _ in counted.values()))
    return Prediction(
        plan=plan,
        model=model,
        combinations=common,
        counts={
            direction: tuple(count * (common // combinations) for count in counts)
            for direction, (combinations, counts) in counted.items()
        },
    )


def _of_flows(plan: AddressPlan, model: DeviceModel, direction: Direction) -> tuple[int, list[int]]:
    """Combinations of all flows of a direction, in their shares, and how many of them each element gets."""
    flows = flows_in(plan.flows, direction)
    parts: list[tuple[int, int, tuple[int, ...]]] = []
    for flow in flows or (None,):
        fields = tuple_fields(plan, model, direction, flow)
        combinations = prod(field.combinations for field in fields)
        parts.append((1 if flow is None else flow.share, combinations, _element_counts(model, fields)))
    common = lcm(*(combinations for _, combinations, _ in parts))
    counts = [0] * model.elements
    for share, combinations, of_flow in parts:
        for element, count in enumerate(of_flow):
            counts[element] += share * (common // combinations) * count
    return common * sum(share for share, _, _ in parts), counts


HashedField = TupleField | ListField | TogetherField


def tuple_fields(
    plan: AddressPlan, model: DeviceModel, direction: Direction, flow: Flow | None = None
) -> list[HashedField]:
    """Every field that the device hashes of the frames of a direction, or of one of its flows."""
    own = FlowPatterns(flow=flow, direction=direction)
    sent = plan.stream_of(direction).sent  # what comes to the DUT, which hashes it before it changes anything
    source, destination = (
        own.host_list(role) or hosts
        for role, hosts in zip(ADDRESSES, (sent.sources, sent.destinations), strict=True)
    )
    ends = {
        side: host_range
        for role, side, host_range in zip(
            ADDRESSES,
            (sending_side(direction), receiving_side(direction)),
            (source, destination),
            strict=True,
        )
        if own.of(role) is None
    }
    modes = {f"{name} hosts": host_range.mode for name, host_range in ends.items() if host_range.count > 1}
    network_ranges = {name: host_range.network_range for name, host_range in ends.items()}
    if sent.common_network:
        network_ranges.pop(receiving_side(direction), None)  # it has no number of its own
    modes |= {
        f"{name} networks": n.mode for name, n in network_ranges.items() if n is not None and n.count > 1
    }
    address_bits = WIDTH[sent.ip_version]
    roles = [ADDRESSES]
    source_word, destination_word = (
        [] if own.of(role) is not None else _address_words(host_range)
        for role, host_range in zip(ADDRESSES, (source, destination), strict=True)
    )
    pairs = [(0, address_bits, source_word, destination_word)]
    if model.hash_type == "type2":
        roles.append(PORTS)
        ports = {"source-port": sent.source_ports, "destination-port": sent.destination_ports}
        modes |= {
            f"{role.replace('-', ' ')}s": udp.mode
            for role, udp in ports.items()
            if udp.first != udp.last and own.of(role) is None
        }
        source_word, destination_word = (
            [] if own.of(role) is not None else [_Word(0, _drawn(range(udp.first, udp.last + 1), udp.mode))]
            for role, udp in ports.items()
        )
        pairs.append((2 * address_bits, WORD_BITS, source_word, destination_word))
    _check_independence(modes, own.modes([role for pair in roles for role in pair]), plan, direction)
    places_of: dict[str, tuple[int, ...]] = {
        role: (first_bit, first_bit + width) if model.symmetric else (first_bit + width * is_destination,)
        for (first_bit, width, _, _), pair in zip(pairs, roles, strict=True)
        for is_destination, role in enumerate(pair)
    }
    fields: list[HashedField] = [*own.fields(places_of, sent.ip_version)]
    for is_destination, listed in enumerate((source, destination)):
        if own.of(ADDRESSES[is_destination]) is not None:
            continue
        if isinstance(listed, HostList) and listed.mode != "fixed":
            begins = (0, address_bits)
            fields.append(
                ListField(
                    bit_offsets=begins if model.symmetric else (begins[is_destination],),
                    version=listed.version,
                    entries=listed.entries,
                    choose=listed.choose,
                )
            )
    if sent.common_network:
        fields.append(_tie_networks(pairs[0][2], pairs[0][3], address_bits, model))
    for first_bit, width, source_words, destination_words in pairs:
        for is_destination, words_of_end in enumerate((source_words, destination_words)):
            for octet, values, gap in words_of_end:
                places = (first_bit + 8 * octet, first_bit + width + 8 * octet)
                fields.append(
                    TupleField(places if model.symmetric else (places[is_destination],), values, gap)
                )
    return fields


def _tie_networks(
    source: list[_Word], destination: list[_Word], width: int, model: DeviceModel
) -> TupleField:
    """Take the network's words out of both addresses and make one field of them that is in both (SEED-82)."""
    octet, numbers, _ = source.pop(_NETWORK_WORD)
    _, others, _ = destination.pop(_NETWORK_WORD)
    # The sides' networks differ in bits that their numbers do not reach: what is there is constant.
    constant = numbers[0] ^ others[0]
    assert all(a ^ constant == b for a, b in zip(numbers, others, strict=True))
    destination.append(_Word(octet, range(constant, constant + 1)))
    places = (8 * octet, 8 * octet + width)
    return TupleField(places * 2 if model.symmetric else places, numbers)


def _check_independence(
    modes: Mapping[str, Mode], of_flow: Mapping[str, Mode], plan: AddressPlan, direction: Direction
) -> None:
    counting, own = (
        [f"{name} ({mode})" for name, mode in found.items() if mode in ("increment", "decrement")]
        for found in (modes, of_flow)
    )
    if len(counting) + len(own) > 1:
        raise PlanError(
            f"{', '.join([*counting, *own])} step together from frame to frame, so not every combination"
            " occurs",
            code="predict.fields-step-together",
            where="plan",
            next_step="Predict a plan in which at most one of the fields that the device hashes steps; the"
            " others must be pseudorandom or fixed.",
        )
    if counting and len(flows_in(plan.flows, direction)) > 1:
        raise PlanError(
            f"{counting[0]} steps through the frames of all flows, so a flow does not get every value",
            code="predict.fields-step-together",
            where="plan",
            next_step="Predict a plan in which it is pseudorandom or fixed, or steps within each flow.",
        )


def _address_words(of_end: Hosts) -> list[_Word]:
    """The address as words whose XOR it is: so that of network and host number may come twice, and a constant
    one has zeros where another one varies; none of an address from a list, which is a field of its own."""
    if isinstance(of_end, HostList) and of_end.mode != "fixed":
        return []
    host_range = of_end.single() if isinstance(of_end, HostList) else of_end
    packed, network_range = bytearray(host_range.base.packed), host_range.network_range
    numbers = range(host_range.first, host_range.first + host_range.count)
    varying = [_Word(host_range.offset, _drawn(numbers, host_range.mode), host_range.gap)]
    octets = set(host_range.number_octets)
    if network_range is not None:
        step = 256 if host_range.shares_octets else 1
        first = int.from_bytes(packed[network_range.offset : network_range.offset + 2], "big") // step * step
        varying.append(
            _Word(
                network_range.offset,
                _drawn(range(first, first + network_range.count * step, step), network_range.mode),
            )
        )
        octets |= {network_range.offset, network_range.offset + 1}
    for octet in octets:
        packed[octet] = 0
    constant = (octet for octet in range(0, len(packed), 2) if not octets.issuperset((octet, octet + 1)))
    words = ((octet, int.from_bytes(packed[octet : octet + 2], "big")) for octet in constant)
    return varying + [_Word(octet, range(word, word + 1)) for octet, word in words]


def _drawn(values: range, mode: Mode) -> range:
    # A field that counts takes each of its values equally often, as one that is drawn does.
    return values[:1] if mode == "fixed" else values


def _element_counts(model: DeviceModel, fields: Sequence[HashedField]) -> tuple[int, ...]:
    size = len(model.table)
    spectra = [field.spectrum(model.key, size) for field in fields]
    combinations = prod(field.combinations for field in fields)
    # The transform back sums `size` products of at most `combinations`. With two address fields and two port
    # fields of full length that passes 2^63; Python's integers then take over, for the few operations that
    # are left.
    if combinations * size >= 2**63:
        spectra = [spectrum.astype(object) for spectrum in spectra]
    by_hash = walsh_hadamard(reduce(np.multiply, spectra)) // size
    counts = [0] * model.elements
    for element, count in zip(model.table, by_hash.tolist(), strict=True):
        counts[element] += count
    return tuple(counts)


# A doubling series asks for the same ports and constants again and again.
@lru_cache(maxsize=64)
def _spectrum(key: bytes, field: TupleField, size: int) -> Counts:
    values = np.arange(field.values.start, field.values.stop, field.values.step, dtype=np.uint32)
    # With an octet in between, as the upper one of a word and the lower one of another.
    parts = ((0, 0xFFFF),) if field.gap == 0 else ((0, 0xFF00), (8 * field.gap, 0x00FF))
    contributed = reduce(
        np.bitwise_xor,
        (
            contributions(key, offset + further, values & np.uint32(mask))
            for offset in field.bit_offsets
            for further, mask in parts
        ),
    )
    histogram = np.bincount((contributed & np.uint32(size - 1)).astype(np.int64), minlength=size).astype(
        np.int64
    )
    spectrum = walsh_hadamard(histogram)
    spectrum.flags.writeable = False
    return spectrum

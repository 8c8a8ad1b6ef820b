# SPDX-License-Identifier: Apache-2.0
"""OTG: the API without a transport: requests and replies are the model's messages, from the classes that the
snappi package brings."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from evenhand.base.version import VERSION
from evenhand.otg.flow_counts import FlowCounts
from evenhand.otg.flow_part import SentFlow
from evenhand.otg.port_part import OtgPort
from evenhand.otg.refusals import BUSY, OtgError, missing_extra
from evenhand.otg.traffic import OtgTraffic, traffic_of
from evenhand.otg.transmission import Transmission
from evenhand.plan import SideName, sending_side
from evenhand.trial import Verdict, describe_reasons

try:
    from google.protobuf import json_format
    from snappi import otg_pb2 as pb
except ImportError as missing:
    raise missing_extra(missing) from missing

MODEL_VERSION = "1.62.0"
"""The version of the model whose classes are used."""
_WORST = (Verdict.FAIL, Verdict.INVALID, Verdict.PASS)
NEIGHBOURS = (
    "protocols: nothing to start or stop; the tester answers ARP and ND for its hosts from set_config on"
)


class OtgService:
    """One configuration at a time. Methods may be called from several threads; all raise OtgError."""

    def __init__(
        self,
        transmission: Transmission,
        *,
        plans: tuple[str, ...],
        locations: Mapping[str, SideName],
        run_name: str,
    ) -> None:
        """
        Args:
            plans: Those that the DUT is set up for, if that is known.
            locations: What the ports are called, besides left and right.
            run_name: The run file, for people.
        """
        self._transmission, self._plans, self._run_name = transmission, plans, run_name
        self._locations = locations
        self._changing = threading.Lock()
        self._config: Any = None
        self._traffic: OtgTraffic | None = None

    @property
    def verdict(self) -> str:
        """`PASS`, `FAIL: ...`, of the last trial that has ended; empty without one."""
        if self._transmission.failure is not None:
            return f"INVALID: {self._transmission.failure}"
        results = self._transmission.results
        if not results:
            return ""
        # What was lost before a pause counts as what is lost after it.
        result = min(results, key=lambda each: _WORST.index(each.verdict))
        reasons = describe_reasons(result.reasons)
        return f"{result.verdict}{': ' if reasons else ''}{reasons}"

    def set_config(self, config: Any) -> Any:
        """Check the configuration and open the ports for it. One that is refused changes nothing, unless its
        ports could not be opened: then none is set."""
        if errors := unlike_model(config):
            raise OtgError(errors)
        document = json_format.MessageToDict(config, preserving_proto_field_name=True)
        with self._changing:
            if not document:
                self._check_idle(has_preemption=False)
                self._config = self._traffic = None
                return self._warnings([])
            rates = self._transmission.line_rates_bps()
            traffic = traffic_of(document, line_rates_bps=rates, plans=self._plans, locations=self._locations)
            stopped = self._check_idle(has_preemption=traffic.has_preemption)
            self._config = self._traffic = None
            self._transmission.open(traffic)
            self._config, self._traffic = config, traffic
        return self._warnings([*stopped, *traffic.notes])

    def _check_idle(self, *, has_preemption: bool) -> list[str]:
        """What was stopped for it."""
        if not self._transmission.is_running:
            return []
        if not has_preemption:
            raise OtgError(
                [
                    "config: flows of another configuration are being sent: stop them, or set"
                    " options.port_options.location_preemption"
                ],
                status=BUSY,
            )
        self._transmission.stop()
        return ["The flows that were sent before were stopped."]

    def _to_be_changed(self, request: str) -> Any:
        """A copy of the configuration."""
        if self._config is None:
            raise OtgError([f"{request}: no configuration is set"])
        if self._transmission.is_running:
            raise OtgError([f"{request}: flows are being sent; stop them first"], status=BUSY)
        changed = pb.Config()
        changed.CopyFrom(self._config)
        return changed

    def append_config(self, append: Any) -> Any:
        """Add flows, as if the configuration had been set with them."""
        changed = self._to_be_changed("config_append")
        for resources in append.config_append_list:
            changed.flows.extend(resources.flows)
        return self.set_config(changed)

    def delete_config(self, delete: Any) -> Any:
        """Remove the flows of these names, as if the configuration had been set without them."""
        changed = self._to_be_changed("config_delete")
        for name in [name for resources in delete.config_delete_list for name in resources.flows]:
            changed.flows.remove(*_by_names(changed.flows, [name], "config_delete_list.flows"))
        return self.set_config(changed)

    def update_config(self, update: Any) -> Any:
        """Give flows another rate or size, as if the configuration had been set with it."""
        if _chosen(update) != "flows":
            raise OtgError([f"{_chosen(update) or 'choice'}: rates and sizes of flows can be updated"])
        changed = self._to_be_changed("config_update")
        for other in update.flows.flows:
            (flow,) = _by_names(changed.flows, [other.name], "flows.flows")
            for key, number in pb.FlowsUpdate.PropertyNames.Enum.items():
                if number in update.flows.property_names and key != "unspecified":
                    getattr(flow, key).CopyFrom(getattr(other, key))
        return self.set_config(changed)

    def get_config(self) -> Any:
        """As it was set; empty if none is."""
        return pb.Config() if self._config is None else self._config

    def set_control_state(self, state: Any) -> Any:
        """Start or stop flows. A stop comes back when the counts are exact, with the verdict."""
        choice = _chosen(state)
        if choice == "protocol":
            return self._start_protocols(state.protocol)
        if choice == "port":
            return self._control_ports(state.port)
        if choice != "traffic":
            raise OtgError([f"{choice or 'choice'}: traffic, ports and protocols can be controlled"])
        transmit = state.traffic.flow_transmit
        wanted = _enum_name(transmit, "state")
        with self._changing:
            if self._traffic is None:
                raise OtgError(["traffic: no configuration is set"])
            flows = self._named(transmit.flow_names)
            if wanted == "start":
                self._transmission.start(self._traffic, flows)
                return self._warnings([f"Every trial is stored in {self._run_name}.", *self._cut()])
            if wanted not in ("stop", "pause", "resume"):
                raise OtgError(["traffic.flow_transmit.state: start, stop, pause or resume"])
            if self._transmission.is_running and len(flows) < len(self._running()):
                raise OtgError([f"traffic.flow_transmit.flow_names: flows of one start {wanted} together"])
            if wanted == "resume":
                self._transmission.resume(self._traffic)
                return self._warnings([])
            if wanted == "pause":
                self._transmission.pause(self._traffic)
            else:
                self._transmission.stop()
        return self._warnings([self.verdict] if self.verdict else [])

    def _running(self) -> list[SentFlow]:
        flows = () if self._traffic is None else self._traffic.flows
        return [flow for flow in flows if self._transmission.counts(flow.direction).is_started]

    def _cut(self) -> list[str]:
        """What is said of captures at a start without an end."""
        captures, traffic = self._transmission.captures, self._traffic
        if traffic is None or not captures.sides or all(flow.packets is not None for flow in traffic.flows):
            return []
        most = captures.most_of(traffic.largest_octets, len(traffic.directions))
        return [f"captures: of each port the first {most:,} frames are kept."]

    def _control_ports(self, state: Any) -> Any:
        """Captures begin and end; links go down and up."""
        choice = _chosen(state)
        if choice == "link":
            return self._set_links(state.link)
        if choice != "capture":
            raise OtgError([f"port.{choice or 'choice'}: captures and links of ports can be controlled"])
        with self._changing:
            if self._traffic is None:
                raise OtgError(["port.capture: no configuration is set"])
            known = {name for capture in self._traffic.captures for name in capture.port_names}
            ports = _by_names(self._traffic.ports, state.capture.port_names, "port.capture.port_names")
            errors = [
                f"port.capture.port_names: {port.name} has no capture in the configuration"
                for port in ports
                if port.name not in known and state.capture.port_names
            ]
            if errors or not known:
                raise OtgError(errors or ["port.capture: the configuration has no captures"])
            if self._transmission.is_running:
                raise OtgError(
                    ["port.capture: begins and ends before and after flows; stop them first"], status=BUSY
                )
            sides = frozenset(port.side for port in ports if port.name in known)
            if _enum_name(state.capture, "state") == "start":
                self._transmission.captures.start(sides)
            else:
                self._transmission.captures.stop(sides)
        return self._warnings([])

    def _set_links(self, link: Any) -> Any:
        """Also while flows are sent to a port."""
        wanted = _enum_name(link, "state")
        if self._traffic is None:
            raise OtgError(["port.link: no configuration is set"])
        ports = _by_names(self._traffic.ports, link.port_names, "port.link.port_names")
        if wanted not in ("up", "down"):
            raise OtgError(["port.link.state: up or down"])
        self._transmission.links.set([port.side for port in ports], is_up=wanted == "up")
        return self._warnings([])

    def get_capture(self, request: Any) -> bytes:
        """The pcap file of a port, of the frames that it received between start and stop."""
        if self._traffic is None:
            raise OtgError(["capture: no configuration is set"])
        if _enum_name(request.packets, "choice") == "slice":
            raise OtgError(["packets: slice: a capture is given as a whole"])
        (port,) = _by_names(self._traffic.ports, [request.port_name], "port_name")
        octets = [each.most_octets for each in self._traffic.captures if port.name in each.port_names]
        return self._transmission.captures.pcap(port.side, next(iter(octets), None))

    def get_states(self, request: Any) -> Any:
        """The neighbours of devices: the DUT's MAC on their link."""
        choice = _chosen(request)
        if choice not in ("ipv4_neighbors", "ipv6_neighbors"):
            raise OtgError([f"{choice or 'choice'}: there are states of ipv4_neighbors and ipv6_neighbors"])
        if self._traffic is None:
            raise OtgError(["states: no configuration is set"])
        version = int(choice[3])
        wanted = list(getattr(request, choice).ethernet_names)
        stations = [each for each in self._traffic.stations if each.version == version]
        known = {each.ethernet for each in stations}
        if errors := [
            f"{choice}.ethernet_names: there is no {name!r}" for name in wanted if name not in known
        ]:
            raise OtgError(errors)
        macs, asked = self._transmission.dut_macs(), self._traffic.plan
        found = [
            {
                "ethernet_name": each.ethernet,
                f"ipv{version}_address": str(each.gateway.ip),
                **(
                    {"link_layer_address": macs[each.side]}
                    if each.side in macs and each.gateway in asked.side(each.side).dut
                    else {}
                ),
            }
            for each in stations
            if not wanted or each.ethernet in wanted
        ]
        return pb.StatesResponse(choice=choice, **{choice: found})

    def _start_protocols(self, protocol: Any) -> Any:
        if _chosen(protocol) == "all" and _enum_name(protocol.all, "state") in ("start", "stop"):
            return self._warnings([NEIGHBOURS])
        raise OtgError(["protocol: there are no protocols to be controlled; ARP and ND always answer"])

    def get_metrics(self, request: Any) -> Any:
        """The metrics of flows and ports, live; exact once their flow is stopped."""
        traffic, choice = self._traffic, _chosen(request)
        if traffic is None:
            raise OtgError(["metrics: no configuration is set"])
        if choice == "flow":
            if request.flow.HasField("tagged_metrics"):
                raise OtgError(["flow.tagged_metrics: is not honoured here"])
            metrics = [self._flow_metric(flow) for flow in self._named(request.flow.flow_names)]
            return pb.MetricsResponse(choice="flow_metrics", flow_metrics=metrics)
        if choice == "port":
            ports = _by_names(traffic.ports, request.port.port_names, "port.port_names")
            are_up = self._transmission.links.up()
            metrics = [self._port_metric(port, traffic, is_up=are_up[port.side]) for port in ports]
            return pb.MetricsResponse(choice="port_metrics", port_metrics=metrics)
        raise OtgError([f"{choice or 'choice'}: there are metrics of flows and ports"])

    def _flow_metric(self, flow: SentFlow) -> Any:
        counts = self._transmission.counts_of(flow)
        first_ns, last_ns = self._transmission.sent_unix_ns if not counts.is_started else (None, None)
        size = float(flow.mean_octets)
        metric = pb.FlowMetric(
            name=flow.name,
            port_tx=flow.port_tx,
            port_rx=flow.port_rx,
            transmit="started" if counts.is_started else "paused" if counts.is_paused else "stopped",
            frames_tx=counts.frames_tx,
            frames_rx=counts.frames_rx,
            bytes_tx=counts.octets_tx,
            bytes_rx=counts.octets_rx,
            frames_tx_rate=counts.tx_fps,
            frames_rx_rate=counts.rx_fps,
            loss=counts.loss_percent if counts.is_loss_known else None,
            tx_rate_bytes=counts.tx_fps * size,
            rx_rate_bytes=counts.rx_fps * size,
            tx_rate_bps=counts.tx_fps * size * 8,
            rx_rate_bps=counts.rx_fps * size * 8,
        )
        for part, name, value in (
            (metric.latency, "minimum_ns", counts.min_ns),
            (metric.latency, "maximum_ns", counts.max_ns),
            (metric.latency, "average_ns", counts.mean_ns),
            (metric.timestamps, "first_timestamp_ns", first_ns),
            (metric.timestamps, "last_timestamp_ns", last_ns),
        ):
            if value is not None:
                setattr(part, name, value)
        return metric

    def _port_metric(self, port: OtgPort, traffic: OtgTraffic, *, is_up: bool) -> Any:
        """Frames of flows alone: not ARP, ND, or what else was on the link."""
        sent, received, octets_tx, octets_rx = FlowCounts(), FlowCounts(), 0.0, 0.0
        for direction in traffic.directions:
            counts, octets = self._transmission.counts(direction), float(traffic.mean_octets_of(direction))
            if sending_side(direction) == port.side:
                sent, octets_tx = counts, octets
            else:
                received, octets_rx = counts, octets
        return pb.PortMetric(
            name=port.name,
            location=port.location,
            link="up" if is_up else "down",
            capture="started" if port.side in self._transmission.captures.sides else "stopped",
            transmit="started" if sent.is_started else "stopped",
            frames_tx=sent.frames_tx,
            frames_rx=received.frames_rx,
            bytes_tx=sent.octets_tx,
            bytes_rx=received.octets_rx,
            frames_tx_rate=sent.tx_fps,
            frames_rx_rate=received.rx_fps,
            bytes_tx_rate=sent.tx_fps * octets_tx,
            bytes_rx_rate=received.rx_fps * octets_rx,
        )

    def get_version(self) -> Any:
        return pb.Version(
            api_spec_version=MODEL_VERSION, sdk_version=MODEL_VERSION, app_version=f"Evenhand {VERSION}"
        )

    def refuse(self, what: str) -> Any:
        """A part of the API that is not here."""
        raise OtgError([f"{what}: is not part of this server; docs/reference/otg.md has what is"])

    def _named(self, names: Iterable[str]) -> tuple[SentFlow, ...]:
        """Flows of these names; all where none is named."""
        assert self._traffic is not None
        found: tuple[SentFlow, ...] = _by_names(self._traffic.flows, names, "flow_names")
        return found

    def _warnings(self, lines: list[str]) -> Any:
        return pb.Warning(warnings=lines)


def _by_names(all_of: Any, names: Iterable[str], at: str) -> Any:
    wanted = list(names)
    known = {each.name: each for each in all_of}
    errors = [f"{at}: there is no {name!r}" for name in wanted if name not in known]
    if errors:
        raise OtgError(errors)
    return tuple(known[name] for name in dict.fromkeys(wanted)) if wanted else all_of


def unlike_model(message: Any, at: str = "") -> list[str]:
    """What the model's classes take, and the model does not: a number that no word of an enum has, and a key
    beside the one that is chosen. And tags of metrics, which no pattern has here."""
    errors = []
    names = {descriptor.name for descriptor, _ in message.ListFields()}
    choice = message.DESCRIPTOR.fields_by_name.get("choice")
    if choice is not None and choice.enum_type is not None:
        options, chosen = choice.enum_type.values_by_name, _chosen(message)
        if beside := names & {*options} - {chosen}:
            what = (
                f"{min(beside)}: the choice is {chosen}"
                if chosen
                else f"choice: is missing beside {min(beside)}"
            )
            errors.append(at + what)
    if "metric_tags" in names:
        errors.append(f"{at}metric_tags: is not honoured here")
    for descriptor, found in message.ListFields():
        place = f"{at}{descriptor.name}"
        if descriptor.message_type is not None:
            each = enumerate(found) if descriptor.is_repeated else [("", found)]
            for number, inner in each:
                errors += unlike_model(inner, f"{place}{f'[{number}]' if descriptor.is_repeated else ''}.")
        elif descriptor.enum_type is not None:
            numbers = found if descriptor.is_repeated else (found,)
            wrong = [each for each in numbers if each not in descriptor.enum_type.values_by_number]
            errors += [f"{place}: {wrong[0]} is no word of the model"] if wrong else []
    return errors


def _chosen(message: Any) -> str:
    """The choice of a message by its name; empty if it has none."""
    return _enum_name(message, "choice")


def _enum_name(message: Any, field: str) -> str:
    value = getattr(message, field)
    values = message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number
    name: str = values[value].name if value in values else str(value)
    return "" if name == "unspecified" else name

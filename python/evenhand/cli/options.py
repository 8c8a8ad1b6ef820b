# SPDX-License-Identifier: Apache-2.0
"""Groups of options, each defined once: a verb names a group as a parameter, and Typer sees the options in it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

from evenhand.cli.common import (
    DEFAULT_MODE,
    CommonNetworkOption,
    DestinationPortsOption,
    FixedSourceNetworkOption,
    FixedSourceOption,
    HostModeOption,
    HostNameOption,
    HostsOption,
    MixOption,
    NetworkModeOption,
    NetworksOption,
    NoRunOption,
    PlanOption,
    RunOption,
    SourcePortsOption,
    open_run,
    read_mix,
    read_plan,
    run_file,
)
from evenhand.plan import AddressPlan, mix_versions
from evenhand.procedure import DEFAULT_PLAN, Repetitions
from evenhand.series import RunStore
from evenhand.units import parse_ratio

Verb = Callable[..., None]


def with_options(verb: Verb) -> Verb:
    """Spread the groups among a verb's parameters: one that is a dataclass becomes its fields, as options; the verb gets it filled in.

    The fields are annotated as parameters of Typer are. TypeError if two groups have a field of the same name.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, type] = {}
    shown: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb).parameters.values():
        annotation = hints[parameter.name]
        if is_dataclass(annotation) and isinstance(annotation, type):
            groups[parameter.name] = annotation
            shown += _options_of(annotation)
        else:
            shown.append(parameter.replace(annotation=annotation, kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(verb)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        verb(**values)

    names = [parameter.name for parameter in shown]
    if len(set(names)) < len(names):
        raise TypeError(f"{verb.__name__}: the same option in two groups: {sorted({name for name in names if names.count(name) > 1})}")
    # What Typer reads instead of the function itself.
    call.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return call


def _options_of(group: type) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The address plan, and what shapes it."""

    plan: PlanOption = DEFAULT_PLAN
    mix: MixOption = None
    hosts: HostsOption = None
    networks: NetworksOption = None
    host_mode: HostModeOption = DEFAULT_MODE
    network_mode: NetworkModeOption = DEFAULT_MODE
    fixed_source: FixedSourceOption = False
    fixed_source_network: FixedSourceNetworkOption = False
    common_network: CommonNetworkOption = False
    source_ports: SourcePortsOption = None
    destination_ports: DestinationPortsOption = None

    def read(self) -> AddressPlan:
        """PlanError or RequestError if there is no such plan."""
        name, other, share = read_mix(self.plan, self.mix)
        first = self._read(name)
        return first if other is None else mix_versions(first, self._read(other), share)

    def _read(self, name: str) -> AddressPlan:
        return read_plan(
            name, self.hosts, self.networks, host_mode=self.host_mode, network_mode=self.network_mode,
            fixed_source=self.fixed_source, fixed_source_network=self.fixed_source_network, common_network=self.common_network,
            source_ports=self.source_ports, destination_ports=self.destination_ports,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionOptions:
    """How often a procedure is made."""

    repetitions: Annotated[
        int, typer.Option("--repetitions", metavar="N", help="Make it N times; median, percentiles and spread are shown.")
    ] = 1
    spread: Annotated[
        str | None,
        typer.Option("--spread", metavar="RATIO", help="Fewer repetitions, from 3 on, if (maximum - minimum) / median is within this."),
    ] = None

    def read(self) -> Repetitions:
        """RequestError names the option."""
        return Repetitions(count=self.repetitions, spread=None if self.spread is None else parse_ratio(self.spread, where="--spread"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Where the run is stored."""

    run: RunOption = None
    no_run: NoRunOption = False
    host_name: HostNameOption = False

    @contextmanager
    def open(self, verb: str) -> Iterator[RunStore | None]:
        """The run's file; None if there shall be none. See `open_run`."""
        path = run_file(verb, self.run, self.no_run)
        if path is None:
            yield None
            return
        with open_run(path, host_name=self.host_name) as store:
            yield store

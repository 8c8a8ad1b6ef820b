# SPDX-License-Identifier: Apache-2.0
"""Groups of options, each defined once: a verb names a group as a parameter, and Typer sees the options in
it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import Annotated, Any, get_type_hints

import typer

from evenhand.base.units import parse_ratio
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
from evenhand.plan import AddressPlan, mix_versions, plan_title
from evenhand.procedure import Repetitions
from evenhand.rig import PlanDefaults, plan_defaults_of
from evenhand.series import RunStore

Verb = Callable[..., None]


def with_options(verb: Verb) -> Verb:
    """Spread the groups among a verb's parameters: one that is a dataclass becomes its fields, as options;
    the verb gets it filled in. A group may hold others.

    The fields are annotated as parameters of Typer are. TypeError if two groups have a field of the same
    name.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, type] = {}
    shown: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb).parameters.values():
        annotation = hints[parameter.name]
        if _is_group(annotation):
            groups[parameter.name] = annotation
            shown += _options_of(annotation)
        else:
            shown.append(parameter.replace(annotation=annotation, kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(verb)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = _filled_in(group, values)
        verb(**values)

    names = [parameter.name for parameter in shown]
    if len(set(names)) < len(names):
        raise TypeError(
            f"{verb.__name__}: the same option in two groups:"
            f" {sorted({name for name in names if names.count(name) > 1})}"
        )
    # What Typer reads instead of the function itself.
    call.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return call


def vars_of(group: Any) -> dict[str, Any]:
    """The options of a group by name."""
    return {field.name: getattr(group, field.name) for field in fields(group)}


def _filled_in(group: Any, values: dict[str, Any]) -> Any:
    """The group with its options, which are taken out of `values`."""
    hints = get_type_hints(group, include_extras=True)
    chosen = {
        field.name: _filled_in(hints[field.name], values)
        if _is_group(hints[field.name])
        else values.pop(field.name)
        for field in fields(group)
    }
    return group(**chosen)


def _is_group(annotation: Any) -> bool:
    return is_dataclass(annotation) and isinstance(annotation, type)


def _options_of(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        if _is_group(hints[field.name]):
            yield from _options_of(hints[field.name])
            continue
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOptions:
    """How many addresses a plan has."""

    hosts: HostsOption = None
    networks: NetworksOption = None

    def read(self, name: str, *, where: str = "NAME") -> AddressPlan:
        """PlanError or RequestError if there is no such plan."""
        return read_plan(name, self.hosts, self.networks, where=where)

    def or_of(self, defaults: PlanDefaults, name: str) -> CountOptions:
        """What was given, and the rest from a testbed whose DUT is set up for this plan."""
        if plan_title(name) != defaults.plan:
            return self
        return CountOptions(
            hosts=self.hosts or _pair(defaults.hosts), networks=self.networks or _pair(defaults.networks)
        )


def _pair(counts: tuple[int, int] | None) -> str | None:
    """As it would be typed."""
    return None if counts is None else ",".join(map(str, counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Which of them frames come from, and their UDP ports."""

    fixed_source: FixedSourceOption = False
    fixed_source_network: FixedSourceNetworkOption = False
    common_network: CommonNetworkOption = False
    source_ports: SourcePortsOption = None
    destination_ports: DestinationPortsOption = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeOptions:
    """What shapes a plan that has a name."""

    counts: CountOptions
    host_mode: HostModeOption = DEFAULT_MODE
    network_mode: NetworkModeOption = DEFAULT_MODE
    sources: SourceOptions

    def read(self, name: str, *, where: str = "NAME") -> AddressPlan:
        """PlanError or RequestError if there is no such plan."""
        return read_plan(
            name,
            self.counts.hosts,
            self.counts.networks,
            host_mode=self.host_mode,
            network_mode=self.network_mode,
            where=where,
            **vars_of(self.sources),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The address plan, and what shapes it."""

    plan: PlanOption = None
    mix: MixOption = None
    shape: ShapeOptions

    def read(self, testbed: str | None) -> AddressPlan:
        """PlanError or RequestError if there is no such plan.

        Args:
            testbed: As it is named on the command line: it may say which plan, and which addresses of it, are
                meant where none are given.
        """
        defaults = PlanDefaults() if testbed is None else plan_defaults_of(testbed)
        name, other, share = read_mix(self.plan or defaults.plan, self.mix)
        if other is None:
            return replace(self.shape, counts=self.shape.counts.or_of(defaults, name)).read(
                name, where="--plan"
            )
        return mix_versions(
            self.shape.read(name, where="--plan"), self.shape.read(other, where="--plan"), share
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionOptions:
    """How often a procedure is made."""

    repetitions: Annotated[
        int,
        typer.Option(
            "--repetitions", metavar="N", help="Make it N times; median, percentiles and spread are shown."
        ),
    ] = 1
    spread: Annotated[
        str | None,
        typer.Option(
            "--spread",
            metavar="RATIO",
            help="Fewer repetitions, from 3 on, if (maximum - minimum) / median is within this.",
        ),
    ] = None

    def read(self) -> Repetitions:
        """RequestError names the option."""
        return Repetitions(
            count=self.repetitions,
            spread=None if self.spread is None else parse_ratio(self.spread, where="--spread"),
        )


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

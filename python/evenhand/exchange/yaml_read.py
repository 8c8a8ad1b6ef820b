# SPDX-License-Identifier: Apache-2.0
"""Exchange: YAML that someone else has written, within the bounds of JSON: no tags, no references."""

from __future__ import annotations

import json
from typing import Any

from evenhand.base.errors import HostError
from evenhand.base.programs import how_to_get_extra
from evenhand.base.validation.hostile_json import MAX_DEPTH, read_json

MOST_EVENTS = 200_000
"""Values and beginnings and ends of lists; a configuration has a few hundred."""


def read_yaml(text: str) -> Any:
    """The value. ValueError: it is no YAML, or more than JSON can say; HostError without PyYAML."""
    try:
        import yaml
    except ImportError as error:
        raise HostError(
            "YAML needs PyYAML, which is not installed",
            code="exchange.yaml-missing",
            where="evenhand[otg]",
            next_step=f"Install it: {how_to_get_extra('otg')}; or write the file as JSON.",
        ) from error
    try:
        depth = 0
        for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
            starts = isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent)
            depth += starts - isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent)
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"line {event.start_mark.line + 1} has a reference")
            if count > MOST_EVENTS or depth > MAX_DEPTH:
                raise ValueError("it has too many values, or is nested too deeply")
        value = yaml.safe_load(text)
        # A date or a set is no JSON; numbers are checked as those of JSON are.
        return read_json(json.dumps(value))
    except (yaml.YAMLError, RecursionError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error

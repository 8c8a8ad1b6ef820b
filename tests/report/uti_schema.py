# SPDX-License-Identifier: Apache-2.0
"""What the published schema of FD.io CSIT for a test case (model 1.5.1) demands, put together from its facts:
which keys there are, their types, and how they depend on each other."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_NAME = {"type": "string", "minLength": 1}
_LONG_NAME = {"type": "string", "minLength": 3}
_TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"}
_NUMBER = {"type": "number", "minimum": 0}
_PROPERTIES: dict[str, Any] = {
    "duration": _NUMBER,
    "dut_type": _NAME,
    "dut_version": _NAME,
    "end_time": _TIME,
    "hosts": {"type": "array", "minItems": 1, "items": _TEXT},
    "telemetry": {"type": "array", "items": _TEXT},
    "message": _TEXT,
    "passed": {"type": "boolean"},
    "start_time": _TIME,
    "tags": {"type": "array", "items": _TEXT},
    "test_documentation": _TEXT,
    "test_id": _LONG_NAME,
    "test_name_long": _LONG_NAME,
    "test_name_short": _LONG_NAME,
    "test_type": {"enum": ["device", "hoststack", "mrr", "ndrpdr", "reconf", "soak"]},
    "tg_type": _NAME,
    "tg_version": _NAME,
    "version": {"const": "1.5.1"},
}


def _closed(properties: dict[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """An object with these keys and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": [key for key in properties if key not in optional],
    }


def _quantity(*units: str) -> dict[str, Any]:
    return _closed({"value": _NUMBER, "unit": {"enum": list(units)}})


def _quantities(*units: str) -> dict[str, Any]:
    values = {"type": "array", "minItems": 1, "items": _NUMBER}
    return _closed({"values": values, "avg": _NUMBER, "stdev": _NUMBER, "unit": {"enum": list(units)}})


_RATE = _closed(
    {"rate": _quantity("pps", "cps", "rps"), "bandwidth": _quantity("bps")}, optional=("bandwidth",)
)
_RATES = _closed(
    {"rate": _quantities("pps", "cps", "rps"), "bandwidth": _quantities("bps")}, optional=("bandwidth",)
)
_BOUNDS = _closed({"lower": _RATE, "upper": _RATE})
_RESULT = {
    "oneOf": [
        _closed({"type": {"const": "unknown"}}),
        _closed({"type": {"const": "mrr"}, "receive_rate": _RATES}),
        _closed({"type": {"const": "ndrpdr"}, "ndr": _BOUNDS, "pdr": _BOUNDS}),
    ]
}
"""Without the types and the latencies that Evenhand never writes."""
SCHEMA: dict[str, Any] = {
    "allOf": [
        _closed({**_PROPERTIES, "result": _RESULT}),
        {
            "oneOf": [
                {"properties": {"passed": {"const": True}, "message": {"const": ""}}},
                {"properties": {"passed": {"const": False}, "message": {"minLength": 1}}},
            ]
        },
    ]
}

# SPDX-License-Identifier: Apache-2.0
"""OTG: the service over HTTP, as the model's OpenAPI document has it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from evenhand.otg.refusals import INTERNAL, TOO_LARGE, OtgError, check_token, missing_extra
from evenhand.otg.service import OtgService

try:
    from google.protobuf import json_format
    from snappi import otg_pb2 as pb
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ImportError as missing:
    raise missing_extra(missing) from missing

MOST_OCTETS = 16 << 20
"""The largest request; a configuration of a million values has about so many."""
VERDICT_HEADER = "Evenhand-Verdict"
"""The header of every answer once a trial has ended."""
Endpoint = Callable[[Request], Awaitable[Response]]


def rest_app(service: OtgService, *, token: str | None) -> Starlette:
    """The application.

    Args:
        token: What a request must bear (`Authorization: Bearer TOKEN`); None: nothing.
    """
    calls: Mapping[tuple[str, str], tuple[Any, Callable[[Any], Any]]] = {
        ("POST", "/config"): (pb.Config, service.set_config),
        ("GET", "/config"): (None, lambda _: service.get_config()),
        ("PATCH", "/config"): (pb.ConfigUpdate, service.update_config),
        ("PATCH", "/config/append"): (pb.ConfigAppend, service.append_config),
        ("PATCH", "/config/delete"): (pb.ConfigDelete, service.delete_config),
        ("POST", "/control/state"): (pb.ControlState, service.set_control_state),
        ("POST", "/control/action"): (None, lambda _: service.refuse("set_control_action")),
        ("POST", "/monitor/metrics"): (pb.MetricsRequest, service.get_metrics),
        ("POST", "/monitor/states"): (pb.StatesRequest, service.get_states),
        ("POST", "/monitor/capture"): (pb.CaptureRequest, service.get_capture),
        ("GET", "/capabilities/version"): (None, lambda _: service.get_version()),
    }
    paths = list(dict.fromkeys(path for _, path in calls))
    routes = [
        Route(
            path,
            _endpoint(service, {method: call for (method, at), call in calls.items() if at == path}, token),
            methods=[method for method, at in calls if at == path],
        )
        for path in paths
    ]
    return Starlette(routes=routes)


def _endpoint(
    service: OtgService, calls: Mapping[str, tuple[Any, Callable[[Any], Any]]], token: str | None
) -> Endpoint:
    async def answer(request: Request) -> Response:
        kind, call = calls[request.method if request.method != "HEAD" else "GET"]
        try:
            check_token(request.headers.get("authorization", ""), token, place="Authorization")
            body = await _body(request)
            message = None if kind is None else _parse(body, kind)
            found = await run_in_threadpool(call, message)
            document = None if isinstance(found, bytes) else to_json(found)
        except OtgError as error:
            return _failed(error)
        except Exception as error:  # a bug must not end the server, nor the flows that it sends
            return _failed(OtgError([f"{type(error).__name__}: {error}"], status=INTERNAL, kind="internal"))
        headers = {VERDICT_HEADER: header_text(service.verdict)} if service.verdict else {}
        if isinstance(found, bytes):
            return Response(found, headers=headers, media_type="application/octet-stream")
        return JSONResponse(document, headers=headers)

    return answer


async def _body(request: Request) -> bytes:
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > MOST_OCTETS:
            raise OtgError([f"the request has more than {MOST_OCTETS:,} octets"], status=TOO_LARGE)
    return bytes(found)


def _parse(body: bytes, kind: Any) -> Any:
    if not body.lstrip().startswith(b"{"):
        raise OtgError(["the request is not as the model has it: it is no object of JSON"])
    try:
        return json_format.Parse(body, kind())
    except (json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        raise OtgError([f"the request is not as the model has it: {str(error)[:300]}"]) from error


def _failed(error: OtgError) -> JSONResponse:
    document = {"code": error.status, "kind": error.kind, "errors": error.errors}
    return JSONResponse(document, status_code=error.status)


def header_text(text: str) -> str:
    """As much of it as a header may have."""
    return text.encode("ascii", "replace").decode()[:1000].replace("\n", " ")


def to_json(message: Any) -> dict[str, Any]:
    """The message as the model's OpenAPI has it: whole numbers are numbers, and no field is left out that has
    a value, whatever it is."""
    found: dict[str, Any] = {}
    for descriptor, value in message.ListFields():
        found[descriptor.name] = _value(descriptor, value)
    return found


def _value(descriptor: Any, value: Any) -> Any:
    if descriptor.is_repeated:
        return [_one(descriptor, each) for each in value]
    return _one(descriptor, value)


def _one(descriptor: Any, value: Any) -> Any:
    if descriptor.message_type is not None:
        return to_json(value)
    if descriptor.enum_type is not None:
        return descriptor.enum_type.values_by_number[value].name
    return value

# SPDX-License-Identifier: Apache-2.0
"""OTG: the service over gRPC, by the servicer that the snappi package brings."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from evenhand.base.errors import HostError
from evenhand.otg.refusals import (
    INTERNAL,
    TOO_LARGE,
    UNAUTHORIZED,
    VALIDATION,
    OtgError,
    check_token,
    missing_extra,
)
from evenhand.otg.rest import MOST_OCTETS, VERDICT_HEADER, header_text
from evenhand.otg.service import OtgService

try:
    import grpc
    from google.protobuf.message import DecodeError
    from snappi import otg_pb2 as pb
    from snappi import otg_pb2_grpc
except ImportError as missing:
    raise missing_extra(missing) from missing

THREADS = 32
REQUEST_S = 30.0
"""A client that sends its request in pieces has so long for all of them: it holds a thread meanwhile."""
MOST_OF_DETAILS = 6000
"""Octets of an error: all metadata of a reply have 16,384."""
_CHUNK_OCTETS = 1 << 20
MOST_OF_A_REPLY = (4 << 20) - 1024
"""Clients of gRPC take 4 MiB unless told otherwise, which the server does not learn."""


def _unary(call: Callable[[OtgService, Any], Any], reply: Any) -> Any:
    """A method that answers with this reply, whose only field has what the service says."""
    (field,) = reply.DESCRIPTOR.fields

    def answer(servicer: _Servicer, request: Any, context: Any) -> Any:
        limit = threading.Timer(REQUEST_S, context.cancel)
        if isinstance(request, Iterator):
            limit.daemon = True
            limit.start()
        try:
            return servicer.answer(context, lambda: reply(**{field.name: call(servicer.service, request)}))
        finally:
            limit.cancel()

    return answer


def _streamed(call: Callable[[OtgService, Any], Any]) -> Any:
    """A method that answers with the message in pieces."""

    def answer(servicer: _Servicer, request: Any, context: Any) -> Iterator[Any]:
        found = servicer.answer(context, lambda: call(servicer.service, request))
        octets = found if isinstance(found, bytes) else found.SerializeToString()
        for start in range(0, len(octets), _CHUNK_OCTETS):
            yield pb.Data(datum=octets[start : start + _CHUNK_OCTETS], chunk_size=_CHUNK_OCTETS)

    return answer


def _metrics(service: OtgService, asked: Any) -> Any:
    return service.get_metrics(asked.metrics_request)


def _states(service: OtgService, asked: Any) -> Any:
    return service.get_states(asked.states_request)


def _capture(service: OtgService, asked: Any) -> bytes:
    return service.get_capture(asked.capture_request)


def _capture_in_one(service: OtgService, asked: Any) -> bytes:
    found = _capture(service, asked)
    if len(found) > MOST_OF_A_REPLY:
        raise OtgError(
            [
                f"capture: {len(found):,} octets, and a client of gRPC takes {MOST_OF_A_REPLY:,} in one"
                " message: ask with streamGetCapture (api.enable_grpc_streaming = True), over REST, or state"
                " a packet_size"
            ],
            status=TOO_LARGE,
        )
    return found


class _Servicer(otg_pb2_grpc.OpenapiServicer):  # type: ignore[misc]
    """Its other methods are `METHODS`."""

    def __init__(self, service: OtgService, token: str | None) -> None:
        self.service, self._token = service, token

    def answer(self, context: Any, call: Callable[[], Any]) -> Any:
        """The reply; an error has the model's `Error` as JSON in its details."""
        try:
            given = str(dict(context.invocation_metadata()).get("authorization", ""))
            check_token(given, self._token, place="metadata authorization")
            found = call()
        except OtgError as error:
            context.abort(_status(error.status), _details(error.status, error.kind, error.errors))
        except Exception as error:  # a bug must not end the server, nor the flows that it sends
            what = f"{type(error).__name__}: {error}"
            context.abort(grpc.StatusCode.INTERNAL, _details(INTERNAL, "internal", [what]))
        if self.service.verdict:
            verdict = header_text(self.service.verdict)
            context.set_trailing_metadata(((VERDICT_HEADER.lower(), verdict),))
        return found


METHODS: Mapping[str, Any] = {
    "SetConfig": _unary(lambda service, asked: service.set_config(asked.config), pb.SetConfigResponse),
    "streamSetConfig": _unary(
        lambda service, asked: service.set_config(_joined(asked, pb.Config())), pb.SetConfigResponse
    ),
    "GetConfig": _unary(lambda service, _: service.get_config(), pb.GetConfigResponse),
    "streamGetConfig": _streamed(lambda service, _: service.get_config()),
    "SetControlState": _unary(
        lambda service, asked: service.set_control_state(asked.control_state), pb.SetControlStateResponse
    ),
    "streamSetControlState": _unary(
        lambda service, asked: service.set_control_state(_joined(asked, pb.ControlState())),
        pb.SetControlStateResponse,
    ),
    "GetMetrics": _unary(_metrics, pb.GetMetricsResponse),
    "streamGetMetrics": _streamed(_metrics),
    "GetVersion": _unary(lambda service, _: service.get_version(), pb.GetVersionResponse),
    "UpdateConfig": _unary(
        lambda service, asked: service.update_config(asked.config_update), pb.UpdateConfigResponse
    ),
    "AppendConfig": _unary(
        lambda service, asked: service.append_config(asked.config_append), pb.AppendConfigResponse
    ),
    "DeleteConfig": _unary(
        lambda service, asked: service.delete_config(asked.config_delete), pb.DeleteConfigResponse
    ),
    "SetControlAction": _unary(
        lambda service, _: service.refuse("set_control_action"), pb.SetControlActionResponse
    ),
    "streamSetControlAction": _unary(
        lambda service, _: service.refuse("set_control_action"), pb.SetControlActionResponse
    ),
    "GetStates": _unary(_states, pb.GetStatesResponse),
    "streamGetStates": _streamed(_states),
    "GetCapture": _unary(_capture_in_one, pb.GetCaptureResponse),
    "streamGetCapture": _streamed(_capture),
}
"""Those of the generated class, by their names."""
for _name, _method in METHODS.items():
    setattr(_Servicer, _name, _method)


def start_grpc(service: OtgService, *, host: str, port: int, token: str | None) -> tuple[Any, int]:
    """A server that answers, and its port.

    Args:
        port: 0: any that is free.

    Raises:
        HostError: It cannot listen there.
    """
    server = grpc.server(
        ThreadPoolExecutor(THREADS),
        options=[("grpc.max_receive_message_length", MOST_OCTETS), ("grpc.so_reuseport", 0)],
    )
    otg_pb2_grpc.add_OpenapiServicer_to_server(_Servicer(service, token), server)
    try:
        taken = server.add_insecure_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    except RuntimeError as error:
        raise cannot_listen(f"{host}:{port}", "the port is in use", option="--grpc-port") from error
    server.start()
    return server, taken


def cannot_listen(where: str, why: str, *, option: str) -> HostError:
    return HostError(
        f"the server cannot listen there: {why}",
        code="otg.cannot-listen",
        where=where,
        next_step=f"End the program that listens there, or choose another port with {option}.",
    )


def _status(code: int) -> Any:
    if code == UNAUTHORIZED:
        return grpc.StatusCode.UNAUTHENTICATED
    return grpc.StatusCode.INTERNAL if code == INTERNAL else grpc.StatusCode.INVALID_ARGUMENT


def _details(code: int, kind: str, errors: Sequence[str]) -> str:
    """The model's `Error`, no longer than a client takes it."""
    most = MOST_OF_DETAILS // max(1, len(errors))
    return json.dumps({"code": code, "kind": kind, "errors": [each[:most] for each in errors]})


def _joined(requests: Iterable[Any], message: Any) -> Any:
    found = bytearray()
    for request in requests:
        found += request.datum
        if len(found) > MOST_OCTETS:
            raise OtgError([f"the request has more than {MOST_OCTETS:,} octets"])
    try:
        message.ParseFromString(bytes(found))
    except DecodeError as error:
        raise OtgError([f"the request is not as the model has it: {error}"], status=VALIDATION) from error
    return message

# SPDX-License-Identifier: Apache-2.0
"""OTG: the service over gRPC, by the servicer that the snappi package brings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from evenhand.base.errors import HostError
from evenhand.otg.refusals import INTERNAL, UNAUTHORIZED, VALIDATION, OtgError, check_token, missing_extra
from evenhand.otg.rest import MOST_OCTETS, VERDICT_HEADER, header_text
from evenhand.otg.service import OtgService

try:
    import grpc
    from google.protobuf.message import DecodeError
    from snappi import otg_pb2 as pb
    from snappi import otg_pb2_grpc
except ImportError as missing:
    raise missing_extra(missing) from missing

THREADS = 8
_CHUNK_OCTETS = 1 << 20


class _Servicer(otg_pb2_grpc.OpenapiServicer):  # type: ignore[misc]
    """Names are those of the generated class."""

    def __init__(self, service: OtgService, token: str | None) -> None:
        self._service, self._token = service, token

    def _answer(self, context: Any, call: Callable[[], Any]) -> Any:
        """The reply; an error has the model's `Error` as JSON in its details."""
        try:
            given = str(dict(context.invocation_metadata()).get("authorization", ""))
            check_token(given, self._token, place="metadata authorization")
            found = call()
        except OtgError as error:
            document = {"code": error.status, "kind": error.kind, "errors": error.errors}
            context.abort(_status(error.status), json.dumps(document))
        except Exception as error:  # a bug must not end the server, nor the flows that it sends
            document = {"code": INTERNAL, "kind": "internal", "errors": [f"{type(error).__name__}: {error}"]}
            context.abort(grpc.StatusCode.INTERNAL, json.dumps(document))
        if self._service.verdict:
            verdict = header_text(self._service.verdict)
            context.set_trailing_metadata(((VERDICT_HEADER.lower(), verdict),))
        return found

    def SetConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(
            context, lambda: pb.SetConfigResponse(warning=self._service.set_config(request.config))
        )

    def streamSetConfig(self, requests: Iterable[Any], context: Any) -> Any:  # noqa: N802
        def call() -> Any:
            return pb.SetConfigResponse(warning=self._service.set_config(_joined(requests, pb.Config())))

        return self._answer(context, call)

    def GetConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(context, lambda: pb.GetConfigResponse(config=self._service.get_config()))

    def streamGetConfig(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        yield from _chunks(self._answer(context, self._service.get_config))

    def SetControlState(self, request: Any, context: Any) -> Any:  # noqa: N802
        def call() -> Any:
            warning = self._service.set_control_state(request.control_state)
            return pb.SetControlStateResponse(warning=warning)

        return self._answer(context, call)

    def GetMetrics(self, request: Any, context: Any) -> Any:  # noqa: N802
        def call() -> Any:
            metrics = self._service.get_metrics(request.metrics_request)
            return pb.GetMetricsResponse(metrics_response=metrics)

        return self._answer(context, call)

    def streamGetMetrics(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        found = self._answer(context, lambda: self._service.get_metrics(request.metrics_request))
        yield from _chunks(found)

    def GetVersion(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(context, lambda: pb.GetVersionResponse(version=self._service.get_version()))

    def UpdateConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(context, lambda: self._service.refuse("update_config"))

    def AppendConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(context, lambda: self._service.refuse("append_config"))

    def DeleteConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(context, lambda: self._service.refuse("delete_config"))

    def SetControlAction(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(context, lambda: self._service.refuse("set_control_action"))

    def GetStates(self, request: Any, context: Any) -> Any:  # noqa: N802
        def call() -> Any:
            return pb.GetStatesResponse(states_response=self._service.get_states(request.states_request))

        return self._answer(context, call)

    def GetCapture(self, request: Any, context: Any) -> Any:  # noqa: N802
        def call() -> Any:
            return pb.GetCaptureResponse(response_bytes=self._service.get_capture(request.capture_request))

        return self._answer(context, call)

    def streamGetStates(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        yield from _chunks(self._answer(context, lambda: self._service.get_states(request.states_request)))

    def streamGetCapture(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        yield from _pieces(self._answer(context, lambda: self._service.get_capture(request.capture_request)))


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


def _chunks(message: Any) -> Iterator[Any]:
    yield from _pieces(message.SerializeToString())


def _pieces(octets: bytes) -> Iterator[Any]:
    for start in range(0, len(octets), _CHUNK_OCTETS):
        yield pb.Data(datum=octets[start : start + _CHUNK_OCTETS], chunk_size=_CHUNK_OCTETS)

# SPDX-License-Identifier: Apache-2.0
"""gRPC in front of a service that says what is expected: every method of the model, in one message and in
pieces."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from snappi import otg_pb2 as pb
from snappi import otg_pb2_grpc

from evenhand.otg.grpc_front import METHODS, MOST_OF_A_REPLY, THREADS, start_grpc
from evenhand.otg.refusals import OtgError

EMPTY = pb.google_dot_protobuf_dot_empty__pb2.Empty()


class Service:
    """What the transports ask of one."""

    verdict = "PASS"
    capture = b"pcap"

    def set_config(self, config: Any) -> Any:
        return pb.Warning(warnings=[config.ports[0].name])

    def get_config(self) -> Any:
        return pb.Config(ports=[pb.Port(name="p" * (3 << 20))])

    def update_config(self, update: Any) -> Any:
        return pb.Warning(warnings=[update.flows.flows[0].name])

    def append_config(self, append: Any) -> Any:
        return pb.Warning(warnings=[f"{len(append.config_append_list)} appended"])

    def delete_config(self, delete: Any) -> Any:
        return pb.Warning(warnings=[f"{len(delete.config_delete_list)} deleted"])

    def set_control_state(self, state: Any) -> Any:
        return pb.Warning(warnings=[str(state.choice)])

    def get_metrics(self, request: Any) -> Any:
        return pb.MetricsResponse(flow_metrics=[pb.FlowMetric(name=request.flow.flow_names[0])])

    def get_states(self, request: Any) -> Any:
        return pb.StatesResponse(choice="ipv4_neighbors")

    def get_capture(self, request: Any) -> bytes:
        return self.capture

    def get_version(self) -> Any:
        return pb.Version(app_version="x")

    def refuse(self, what: str) -> Any:
        raise OtgError([what])


@pytest.fixture(scope="module")
def service() -> Service:
    return Service()


@pytest.fixture(scope="module")
def stub(service: Service) -> Iterator[Any]:
    server, port = start_grpc(service, host="127.0.0.1", port=0, token=None)  # type: ignore[arg-type]
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield otg_pb2_grpc.OpenapiStub(channel)
    server.stop(None).wait()


def joined(pieces: Any) -> bytes:
    return b"".join(each.datum for each in pieces)


def test_every_method_of_the_model_is_there() -> None:
    model = {name for name in vars(otg_pb2_grpc.OpenapiServicer) if name[0] != "_"}
    assert METHODS.keys() == model


def test_answers_come_in_one_message_or_in_pieces(stub: Any, service: Service) -> None:
    config = pb.Config(ports=[pb.Port(name="left")])
    answer, call = stub.SetConfig.with_call(pb.SetConfigRequest(config=config))
    assert list(answer.warning.warnings) == ["left"]
    assert ("evenhand-verdict", "PASS") in [(each.key, each.value) for each in call.trailing_metadata()]
    datum = config.SerializeToString()
    pieces = [pb.Data(datum=each, chunk_size=1) for each in (datum[:2], datum[2:])]
    assert list(stub.streamSetConfig(iter(pieces)).warning.warnings) == ["left"]
    update = pb.UpdateConfigRequest()
    update.config_update.flows.flows.add(name="f")
    assert list(stub.UpdateConfig(update).warning.warnings) == ["f"]
    append, delete = pb.AppendConfigRequest(), pb.DeleteConfigRequest()
    append.config_append.config_append_list.add()
    delete.config_delete.config_delete_list.add()
    assert list(stub.AppendConfig(append).warning.warnings) == ["1 appended"]
    assert list(stub.DeleteConfig(delete).warning.warnings) == ["1 deleted"]
    whole = pb.Config()
    whole.ParseFromString(joined(stub.streamGetConfig(EMPTY)))
    assert whole == stub.GetConfig(EMPTY).config
    asked = pb.GetMetricsRequest(metrics_request=pb.MetricsRequest(flow=pb.FlowMetricsRequest()))
    asked.metrics_request.flow.flow_names.append("f")
    metrics = pb.MetricsResponse()
    metrics.ParseFromString(joined(stub.streamGetMetrics(asked)))
    assert metrics.flow_metrics[0].name == stub.GetMetrics(asked).metrics_response.flow_metrics[0].name == "f"
    states = pb.GetStatesRequest()
    assert joined(stub.streamGetStates(states))
    assert stub.GetStates(states).states_response.choice
    assert stub.SetControlState(pb.SetControlStateRequest()).warning.warnings
    assert stub.streamSetControlState(iter(pieces[:0])).warning.warnings
    assert stub.GetVersion(EMPTY).version.app_version == "x"


def test_a_capture_that_is_too_large_for_one_message_says_how_it_comes(stub: Any, service: Service) -> None:
    """Clients of gRPC take 4 MiB in one."""
    asked = pb.GetCaptureRequest()
    for size in (3, MOST_OF_A_REPLY):
        service.capture = b"x" * size
        assert (
            stub.GetCapture(asked).response_bytes == service.capture == joined(stub.streamGetCapture(asked))
        )
    service.capture += b"y"
    with pytest.raises(grpc.RpcError) as caught:
        stub.GetCapture(asked)
    error = json.loads(caught.value.details())
    assert (error["code"], error["kind"]) == (413, "validation")
    assert "streamGetCapture" in error["errors"][0]
    assert joined(stub.streamGetCapture(asked)) == service.capture


@pytest.mark.parametrize(("name", "what"), [("SetControlAction", "set_control_action")])
def test_what_is_not_there_is_refused_by_its_name(stub: Any, name: str, what: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        getattr(stub, name)(getattr(pb, f"{name}Request")())
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert json.loads(caught.value.details())["errors"] == [what]


def test_a_long_error_reaches_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """All metadata of a reply have 16 KiB."""
    service = Service()

    def refuse() -> None:
        raise OtgError(["x" * 3000] * 40)

    monkeypatch.setattr(service, "get_version", refuse)
    server, port = start_grpc(service, host="127.0.0.1", port=0, token=None)  # type: ignore[arg-type]
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            with pytest.raises(grpc.RpcError) as caught:
                otg_pb2_grpc.OpenapiStub(channel).GetVersion(EMPTY, timeout=30)
            errors = json.loads(caught.value.details())["errors"]
            assert len(errors) == 21
            assert errors[-1] == "and 20 more"
    finally:
        server.stop(None)


def test_clients_that_send_half_a_request_hold_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.otg.grpc_front.REQUEST_S", 0.5)
    server, port = start_grpc(Service(), host="127.0.0.1", port=0, token=None)  # type: ignore[arg-type]
    is_over = threading.Event()

    def half() -> Iterator[Any]:
        yield pb.Data(datum=b"", chunk_size=1)
        is_over.wait(60)

    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = otg_pb2_grpc.OpenapiStub(channel)
            waiting = [stub.streamSetConfig.future(half()) for _ in range(THREADS)]
            assert stub.GetVersion(EMPTY, timeout=60).version.app_version == "x"
            assert all(each.exception(timeout=60) is not None for each in waiting)
    finally:
        is_over.set()
        server.stop(None)

"""Bodies recorded from kubectl 1.33's typed commands, and broken ones."""

import json
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from playground.kube_api.protobuf import MAGIC, MEDIA_TYPE, decode
from playground.kube_api.status import Refusal
from tests.kube_api.conftest import PODS, Kube

BODIES = {
    name: bytes.fromhex(text)
    for name, text in json.loads(
        Path(__file__).with_name("data").joinpath("protobuf_bodies.json").read_text()
    ).items()
}


def test_a_deployment_reads_as_the_same_command_in_json() -> None:
    made = decode(BODIES["deployments"])
    assert made["metadata"] == {"name": "pb", "labels": {"app": "pb"}}
    assert made["spec"]["replicas"] == 2
    assert made["spec"]["selector"] == {"matchLabels": {"app": "pb"}}
    assert made["spec"]["template"]["spec"] == {
        "containers": [{"name": "x", "image": "x:1", "ports": [{"containerPort": 80}]}]
    }


def test_numbers_that_are_zero_on_purpose_stay() -> None:
    assert decode(BODIES["priorityclasses"])["value"] == 0


def test_bytes_are_base64_and_int_or_string_is_either() -> None:
    assert decode(BODIES["secrets"])["data"] == {"a": "Yg=="}
    assert decode(BODIES["poddisruptionbudgets"])["spec"]["minAvailable"] == "50%"
    assert decode(BODIES["services"])["spec"]["ports"][0]["targetPort"] == "http"


def test_delete_options_are_read() -> None:
    assert decode(BODIES["delete"])["gracePeriodSeconds"] == 5


@pytest.mark.parametrize("plural", [name for name in BODIES if name != "delete"])
def test_each_recorded_body_creates_its_object(kube: Kube, plural: str) -> None:
    paths = {
        "namespaces": "/api/v1/namespaces",
        "priorityclasses": "/apis/scheduling.k8s.io/v1/priorityclasses",
        "deployments": "/apis/apps/v1/namespaces/default/deployments",
        "jobs": "/apis/batch/v1/namespaces/default/jobs",
        "poddisruptionbudgets": "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    }
    path = paths.get(plural, f"/api/v1/namespaces/default/{plural}")
    answer = kube.send("POST", path, BODIES[plural], media=MEDIA_TYPE)
    assert answer.status_code == 201, answer.json()
    assert kube.get(f"{path}/pb").status_code == 200


def test_a_kind_that_is_not_read_is_refused_with_a_way_out(kube: Kube) -> None:
    body = MAGIC + b"\x0a\x09\x0a\x02v1\x12\x03Foo\x12\x00"
    answer = kube.send("POST", PODS, body, media=MEDIA_TYPE)
    assert (answer.status_code, answer.json()["reason"]) == (415, "UnsupportedMediaType")
    assert "apply -f" in answer.json()["message"]


@given(st.sampled_from(sorted(BODIES)), st.integers(4, 400), st.integers(0, 255))
def test_a_damaged_body_is_read_or_refused_never_more(name: str, place: int, byte: int) -> None:
    body = bytearray(BODIES[name])
    body[min(place, len(body) - 1)] = byte
    try:
        decode(bytes(body))
    except Refusal as refusal:
        assert refusal.reason in ("BadRequest", "UnsupportedMediaType")


@given(st.binary(max_size=200))
def test_noise_is_read_or_refused_never_more(noise: bytes) -> None:
    try:
        decode(MAGIC + noise)
    except Refusal as refusal:
        assert refusal.reason in ("BadRequest", "UnsupportedMediaType")

from __future__ import annotations

import base64
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterregistry.api.clusterregistry.v1alpha1 import validation
from clusterregistry.api.clusterregistry.v1alpha1.types import CLUSTER, STATES
from clusterregistry.api.clusterregistry.v1alpha1.validation import (
    ca_bundle_error,
    client_cidr_error,
    server_address_error,
    validate_spec,
    validate_spec_update,
)
from clusterregistry.apimachinery.schema import schemas
from tests.apimachinery import json_values

KEY = ec.generate_private_key(ec.SECP256R1())
NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
START = datetime(2024, 1, 1, tzinfo=UTC)
CERTIFICATE = (
    x509.CertificateBuilder(NAME, NAME, KEY.public_key(), 1, START, START + timedelta(days=1))
    .sign(KEY, hashes.SHA256())
    .public_bytes(serialization.Encoding.PEM)
)
PRIVATE = KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def bundle(*parts: bytes) -> str:
    return base64.b64encode(b"".join(parts)).decode()


def with_endpoints(**endpoints: Any) -> dict[str, Any]:
    return {"spec": {"kubernetesApiEndpoints": endpoints}}


@pytest.mark.parametrize(
    "address",
    [
        *("10.0.0.1", "10.0.0.1:6443", "one", "one:6443", "api.example.com", "api.example.com.", "a_b.internal:1"),
        *("::1", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:6443", "xn--bcher-kva.example"),
        *("https://api.example.com", "http://10.0.0.1:8080/k8s/c/1?x=y", "https://[::1]:6443", "HTTPS://a"),
    ],
)
def test_hosts_addresses_and_urls_are_server_addresses(address: str) -> None:
    assert server_address_error(address) == ""


@pytest.mark.parametrize(
    "address",
    [
        *("not a host", "a:b", "a:0", "a:65536", "a:1:2", "10.0.0.256", "10.0.0", "[10.0.0.1]:1", "[::1", "[::1]x"),
        *("-a", "a..b", "a/b", "ftp://a", "https://", "https://a:99999", "https://a:0", "https://u:p@a", "//a", ":443"),
        *("x" * 254, "x" * 64, "fe80::1%eth0", "https://a b", "é", "https://[::1", "a\n", "https://a_:b"),
    ],
)
def test_anything_else_is_not(address: str) -> None:
    assert server_address_error(address) != ""


@settings(max_examples=300)
@given(
    st.from_regex(validation._USUAL_ADDRESS, fullmatch=True)
    | st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){2,4}(:[0-9]{0,6})?\n?", fullmatch=True)
    | st.text(alphabet="ab.:-_019\n", max_size=20)
)
def test_what_seems_to_be_a_usual_address_is_one(address: str) -> None:
    found = server_address_error(address)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "_USUAL_ADDRESS", re.compile("(?!)"))
        assert server_address_error(address) == found


@pytest.mark.parametrize("cidr", ["0.0.0.0/0", "10.0.0.0/8", "10.1.2.3/8", "::/0", "2001:db8::/32"])
def test_ranges_of_clients_are_cidrs(cidr: str) -> None:
    assert client_cidr_error(cidr) == ""


@pytest.mark.parametrize(
    "cidr", ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/255.0.0.0", "x/8", "/8", "10.0.0.0/", "fe80::%1/8"]
)
def test_nothing_else_is(cidr: str) -> None:
    assert client_cidr_error(cidr) != ""


@pytest.mark.parametrize(
    "good",
    [
        bundle(CERTIFICATE),
        bundle(CERTIFICATE, b"\n# a comment\n", CERTIFICATE),
        bundle(b"ca-bytes"),
        "QUJD",
        "not base64",
    ],
)
def test_certificates_and_bytes_that_are_not_pem_are_left_alone(good: str) -> None:
    assert ca_bundle_error(good) == ""


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (bundle(PRIVATE), "private key"),
        (bundle(CERTIFICATE, PRIVATE), "private key"),
        (bundle(b"x\n-----BEGIN OPENSSH PRIVATE KEY-----\n"), "private key"),
        (bundle(CERTIFICATE[:-10]), "does not end"),
        (bundle(CERTIFICATE.replace(b"CERTIFICATE", b"CERTIFICATE REQUEST")), "block 1 is not a certificate"),
        (
            bundle(CERTIFICATE, b"-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"),
            "certificate 2 does not",
        ),
    ],
)
def test_pem_that_is_not_only_good_certificates_is_refused(bad: str, message: str) -> None:
    assert message in ca_bundle_error(bad)


def test_a_refused_bundle_is_not_shown() -> None:
    (error,) = validate_spec(with_endpoints(caBundle=bundle(PRIVATE)))
    assert error.field == "spec.kubernetesApiEndpoints.caBundle"
    assert bundle(PRIVATE)[:40] not in str(error)


def test_a_refused_url_with_a_password_is_not_shown() -> None:
    (error,) = validate_spec(with_endpoints(serverEndpoints=[{"serverAddress": "https://u:hunter2@a"}]))
    assert "hunter2" not in str(error)


def test_every_wrong_endpoint_is_reported_with_its_path() -> None:
    endpoints = [{"clientCIDR": "0.0.0.0/0"}, {"clientCIDR": "x", "serverAddress": "not a host"}]
    assert [error.field for error in validate_spec(with_endpoints(serverEndpoints=endpoints))] == [
        "spec.kubernetesApiEndpoints.serverEndpoints[1].clientCIDR",
        "spec.kubernetesApiEndpoints.serverEndpoints[1].serverAddress",
    ]


@pytest.mark.parametrize("spec", [{"clusterID": "two"}, {}, None, {"clusterID": ""}])
def test_a_cluster_id_cannot_change_or_go(spec: Any) -> None:
    (error,) = validate_spec_update({"spec": spec}, {"spec": {"clusterID": "one"}})
    assert error.field == "spec.clusterID"
    assert error.reason == "FieldValueInvalid"
    assert error.message.endswith(": field is immutable")


@pytest.mark.parametrize("before", [{}, {"spec": {}}, {"spec": {"clusterID": ""}}, {"spec": {"clusterID": "one"}}])
def test_a_cluster_id_can_be_set_once(before: dict[str, Any]) -> None:
    assert validate_spec_update({"spec": {"clusterID": "one"}}, before) == []


@given(st.fixed_dictionaries({}, optional={name: json_values.shaped(part) for name, part in CLUSTER.fields.items()}))
def test_validation_takes_any_json(cluster: dict[str, Any]) -> None:
    assert all(error.field.startswith("spec.") for error in validate_spec(cluster) + validate_spec_update(cluster, {}))


@given(st.text(alphabet="ab.:/[]@-_1%é \0", max_size=20) | st.text(max_size=20))
def test_any_text_is_a_server_address_or_is_not(text: str) -> None:
    assert isinstance(server_address_error(text) + client_cidr_error(text) + ca_bundle_error(text), str)


def test_cryptography_is_not_imported_before_it_is_needed() -> None:
    code = (
        "import sys; from clusterregistry.registry.cluster import cluster_resource; cluster_resource('warn'); "
        "sys.exit('cryptography' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def described(schema: schemas.Schema) -> dict[str, Any]:
    """A schema in the terms of a CRD, descriptions aside."""
    match schema:
        case schemas.Object():
            required = {"required": list(schema.required)} if schema.required else {}
            return {"type": "object", "properties": {k: described(v) for k, v in schema.fields.items()}, **required}
        case schemas.Map():
            return {"type": "object", "additionalProperties": described(schema.values)}
        case schemas.Array():
            keys = {"x-kubernetes-list-map-keys": list(schema.map_keys)} if schema.map_keys else {}
            items = described(schema.items)
            return {"type": "array", "items": items, "x-kubernetes-list-type": schema.list_type, **keys}
        case schemas.String():
            given_options = {"format": schema.format, "enum": list(schema.enum), "maxLength": schema.max_length}
            return {"type": "string"} | {key: value for key, value in given_options.items() if value}
        case schemas.Integer():
            return {"type": "integer", "format": schema.format, "minimum": schema.minimum}
        case _:
            return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        prose = {key for key in ("description", "x-kubernetes-validations") if not isinstance(value.get(key), dict)}
        return {key: without_descriptions(item) for key, item in value.items() if key not in prose}
    return value


def test_the_schema_is_that_of_the_reference() -> None:
    path = Path(__file__).parents[2] / "conformance" / "cluster-crd.yaml"
    reference = yaml.safe_load(path.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    parts = {name: without_descriptions(reference["properties"][name]) for name in ("spec", "status")}
    ours = described(CLUSTER)["properties"]
    # Not in the recordings: what an observer sums up.
    assert ours["status"]["properties"].pop("state") == {"type": "string", "enum": list(STATES)}
    assert ours["status"]["properties"].pop("observedAt") == {"type": "string", "format": "date-time"}
    assert ours == parts

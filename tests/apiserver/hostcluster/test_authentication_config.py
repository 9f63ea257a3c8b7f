"""What the configmap of a host cluster says."""

from __future__ import annotations

import pytest

from clusterregistry.apiserver.authn.request_header import ProxyHeaders
from clusterregistry.apiserver.hostcluster.authentication_config import AuthenticationConfig, read
from tests.apiserver.authn.certificates import root
from tests.apiserver.hostcluster.hosts import data

CA = root("users").pem


def test_everything_that_kube_apiserver_writes_is_read() -> None:
    proxies = root("proxies").pem
    assert read({"data": data(client_ca_file=CA, requestheader_client_ca_file=proxies)}) == AuthenticationConfig(
        client_cas=CA,
        proxy_cas=proxies,
        proxy_names=("front-proxy-client",),
        headers=ProxyHeaders(),
    )


@pytest.mark.parametrize("configmap", [{}, {"data": None}, {"data": {}}])
def test_what_is_absent_is_not_there_in_the_host_cluster(configmap: dict[str, object]) -> None:
    nothing = ProxyHeaders(user=(), uid=(), group=(), extra=())
    assert read(configmap) == AuthenticationConfig(headers=nothing)


def test_an_older_host_cluster_has_no_header_for_uids() -> None:
    without = {name: value for name, value in data().items() if "uid" not in name}
    assert read({"data": without}).headers == ProxyHeaders(uid=())


def test_every_mistake_is_named() -> None:
    wrong = data(client_ca_file="no certificate", requestheader_allowed_names="{}", requestheader_group_headers="[1]")
    with pytest.raises(ValueError, match="kube-system/extension-apiserver-authentication") as raised:
        read({"data": wrong | {"requestheader-uid-headers": 7, "requestheader-username-headers": "X"}})
    for expected in (
        "client-ca-file: holds no certificates",
        "requestheader-allowed-names: is no list",
        "requestheader-group-headers: is no list",
        "requestheader-uid-headers: must be text",
        "requestheader-username-headers: is no list",
    ):
        assert expected in str(raised.value)

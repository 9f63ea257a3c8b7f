from __future__ import annotations

import pytest

from clusterregistry.apiserver.pki.provision import serving_names

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@pytest.mark.parametrize(
    ("addresses", "more"),
    [
        ((), ()),
        (("127.0.0.1", ""), ()),
        (("0.0.0.0", "::"), ()),
        (("10.0.0.1", "Reg.Example.COM"), ("10.0.0.1", "reg.example.com")),
        (("FD00:0:0::1",), ("fd00::1",)),
        (("fe80::1%eth0",), ("fe80::1",)),
        (("not a name", "-x", "a..b", "x" * 64), ()),
    ],
)
def test_a_server_has_the_names_that_lead_to_it(addresses: tuple[str, ...], more: tuple[str, ...]) -> None:
    assert serving_names(*addresses, host_name="") == LOOPBACK + more


def test_the_host_name_is_one_of_them() -> None:
    assert serving_names(host_name="Box-1") == (*LOOPBACK, "box-1")
    assert serving_names(host_name="my_box!") == LOOPBACK

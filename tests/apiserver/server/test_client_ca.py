"""Authentication by client certificate over real TLS: users, front proxies, and impostors."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterregistry.client.errors import DisconnectedError, TLSError
from tests.apiserver.api.clients import Answer
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.server.authorities import AUTHORITY, ED25519, RSA, Holder, root
from tests.apiserver.server.programs import Program

SAYS_ALICE = [("X-Remote-User", "alice"), ("X-Remote-Group", "guests")]


class Setting:
    """A server with an authority for users and one for front proxies."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.users = root(directory, "users")
        self.proxies = root(directory, "proxies")
        self.between = self.users.authority("between")
        self.proxy = self.proxies.issue("front-proxy")
        self.jane = self.users.issue("jane", subject="/O=devs/CN=jane")
        self.program = Program(
            directory / "server",
            f"--client-ca-file={self.users.certificate}",
            f"--requestheader-client-ca-file={self.proxies.certificate}",
            "--requestheader-allowed-names=front-proxy,second-proxy",
        )

    def ask(self, holder: Holder | None, *headers: tuple[str, str], chain: Path | None = None) -> Answer:
        """The answer to a list of clusters by somebody with a certificate."""
        identity = () if holder is None else (chain or holder.chain, holder.key)
        with self.program.client(*identity) as client:
            return client.exchange("GET", CLUSTERS, headers=list(headers), body=b"")

    def who(self, holder: Holder | None, *headers: tuple[str, str]) -> str:
        """The name under which the server knows somebody: it says so when it refuses."""
        message = self.ask(holder, *headers).refused(403, "Forbidden")["message"]
        found = re.search(r'User "(.*)" cannot list', message)
        assert found is not None, message
        return found[1]


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    made = Setting(tmp_path_factory.mktemp("authorities"))
    with made.program:
        yield made


def broken_off(setting: Setting, holder: Holder, chain: Path | None = None) -> bool:
    """Whether the handshake fails. With TLS 1.3 a client learns of it only when it reads."""
    try:
        setting.ask(holder, chain=chain)
    except (TLSError, DisconnectedError):
        return True
    return False


def test_a_user_is_who_the_certificate_names(setting: Setting) -> None:
    assert setting.who(setting.jane) == "jane"


def test_an_organization_is_a_group(setting: Setting) -> None:
    master = setting.users.issue("master", subject="/O=system:masters/CN=master")
    setting.ask(master).expect(200)


@pytest.mark.parametrize("kind", [RSA, ED25519], ids=["RSA", "Ed25519"])
def test_keys_of_all_usual_kinds_are_good(setting: Setting, kind: tuple[str, ...]) -> None:
    assert setting.who(setting.users.issue(f"jane-{kind[0][:3]}", subject="/CN=jane", kind=kind)) == "jane"


def test_a_certificate_of_the_shortest_command_line_is_good(setting: Setting) -> None:
    assert setting.who(setting.users.issue("plain", extensions="")) == "plain"


def test_intermediate_certificates_that_come_along_lead_to_the_authority(setting: Setting) -> None:
    lower = setting.between.authority("lower")
    assert setting.who(lower.issue("joe")) == "joe"
    assert setting.who(setting.proxies.authority("proxies-between").issue("second-proxy"), *SAYS_ALICE) == "alice"


def test_a_missing_intermediate_certificate_ends_the_handshake(setting: Setting) -> None:
    lost = setting.between.issue("lost")
    assert broken_off(setting, lost, chain=lost.certificate)


def test_an_authority_may_limit_what_is_below_it(setting: Setting) -> None:
    last = setting.users.authority("last", extensions=AUTHORITY.replace("CA:true", "CA:true,pathlen:0"))
    assert setting.who(last.issue("ann")) == "ann"
    assert broken_off(setting, last.authority("one-more").issue("ben"))


def test_a_user_cannot_sign(setting: Setting) -> None:
    assert broken_off(setting, setting.jane.issue("admin", subject="/O=system:masters/CN=admin"))


def test_a_certificate_for_servers_ends_the_handshake(setting: Setting) -> None:
    assert broken_off(setting, setting.users.issue("server", extensions="extendedKeyUsage=serverAuth\n"))


def test_a_certificate_of_an_unknown_authority_ends_the_handshake(setting: Setting, tmp_path: Path) -> None:
    assert broken_off(setting, root(tmp_path, "stranger").issue("jane"))
    assert broken_off(setting, root(tmp_path, "users").issue("jane"))


def test_a_certificate_that_has_ended_is_answered_with_a_status(setting: Setting) -> None:
    ended = setting.users.issue("ended", days=-1)
    setting.ask(ended).refused(401, "Unauthorized")
    setting.ask(ended, ("Authorization", "Bearer admintoken")).expect(200)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_that_is_resumed_keeps_its_user_and_the_intermediates(
    setting: Setting, version: ssl.TLSVersion
) -> None:
    context = setting.program.trust()
    context.maximum_version = version
    holder = setting.between.issue("resuming")
    context.load_cert_chain(holder.chain, holder.key)
    request = f"GET {CLUSTERS} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    session, answers, resumed = None, [], []
    for _ in range(2):
        with setting.program.socket(trust=context, session=session) as connection:
            connection.sendall(request)
            answers.append(connection.recv(65536))
            session = connection.session
            resumed.append(connection.session_reused)
    assert resumed == [False, True]
    assert all(b'User \\"resuming\\" cannot list' in answer for answer in answers), answers


def test_a_proxy_speaks_for_users(setting: Setting) -> None:
    assert setting.who(setting.proxy, *SAYS_ALICE) == "alice"
    setting.ask(setting.proxy, ("X-Remote-User", "alice"), ("X-Remote-Group", "system:masters")).expect(200)


def test_one_connection_of_a_proxy_speaks_for_many(setting: Setting) -> None:
    with setting.program.client(setting.proxy.certificate, setting.proxy.key) as client:
        for name in ("alice", "bob", "alice"):
            answer = client.exchange("GET", CLUSTERS, headers=[("X-Remote-User", name)], body=b"")
            assert f'User "{name}" cannot' in answer.refused(403, "Forbidden")["message"]
        client.exchange("GET", CLUSTERS, headers=[], body=b"").refused(401, "Unauthorized")


# Attacks ---------------------------------------------------------------------------------------------------------


MASTER = [("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters")]


def test_without_a_certificate_headers_of_proxies_are_nothing(setting: Setting) -> None:
    assert setting.who(None, *MASTER) == "system:anonymous"
    assert setting.who(None, *MASTER, ("Authorization", "Bearer nobodytoken")) == "nobody"


def test_a_users_certificate_does_not_make_a_proxy(setting: Setting) -> None:
    assert setting.who(setting.jane, *MASTER) == "jane"


def test_the_name_of_a_proxy_from_the_users_authority_does_not_make_a_proxy(setting: Setting) -> None:
    impostor = setting.users.issue("impostor", subject="/CN=front-proxy")
    assert setting.who(impostor, *MASTER) == "front-proxy"


def test_another_name_from_the_proxies_authority_does_not_make_a_proxy(setting: Setting) -> None:
    other = setting.proxies.issue("other")
    setting.ask(other, *MASTER).refused(401, "Unauthorized")
    assert setting.who(other, *MASTER, ("Authorization", "Bearer nobodytoken")) == "nobody"


def test_a_certificate_of_the_proxies_authority_makes_no_user(setting: Setting) -> None:
    master = setting.proxies.issue("proxy-master", subject="/O=system:masters/CN=admin")
    setting.ask(master).refused(401, "Unauthorized")
    setting.ask(setting.proxy).refused(401, "Unauthorized")


def test_a_certificate_sent_along_does_not_lend_its_authority(setting: Setting) -> None:
    """Jane sends the proxy's certificate, and the proxies' authority, behind her own."""
    together = setting.directory / "together.chain"
    parts = (setting.jane, setting.proxy, setting.proxies, setting.users)
    together.write_text("".join(each.certificate.read_text() for each in parts))
    answer = setting.ask(setting.jane, *MASTER, chain=together).refused(403, "Forbidden")
    assert 'User "jane" cannot' in answer["message"]


@pytest.mark.parametrize("header", ["X_Remote_User", "X-Remote_User", "X-Remote-User-", "XRemote-User", "Remote-User"])
def test_a_header_that_looks_alike_is_another(setting: Setting, header: str) -> None:
    assert setting.who(setting.proxy, (header, "admin"), *SAYS_ALICE) == "alice"
    setting.ask(setting.proxy, (header, "admin")).refused(401, "Unauthorized")


def test_of_a_header_that_comes_twice_the_first_counts_in_whatever_case(setting: Setting) -> None:
    context = setting.program.trust()
    context.load_cert_chain(setting.proxy.chain, setting.proxy.key)
    with setting.program.socket(trust=context) as connection:  # a client library sends each name in one case
        fields = "Host: x\r\nx-remote-USER: alice\r\nX-Remote-User: admin"
        connection.sendall(f"GET {CLUSTERS} HTTP/1.1\r\n{fields}\r\n\r\n".encode())
        assert b'User \\"alice\\" cannot list' in connection.recv(65536)


def test_the_proxys_word_counts_before_a_token(setting: Setting) -> None:
    assert setting.who(setting.proxy, *SAYS_ALICE, ("Authorization", "Bearer admintoken")) == "alice"
    setting.ask(setting.proxy, ("Authorization", "Bearer admintoken")).expect(200)


def test_a_proxy_cannot_lend_rights_to_a_stranger(setting: Setting) -> None:
    stranger = [("X-Remote-User", "system:anonymous"), ("X-Remote-Group", "system:unauthenticated")]
    assert setting.who(setting.proxy, *stranger) == "system:anonymous"


def test_the_generated_certificates_stay_good_beside_others(setting: Setting) -> None:
    certs = setting.program.data / "certs"
    with setting.program.client(certs / "admin.crt", certs / "admin.key") as client:
        client.exchange("GET", CLUSTERS, headers=[], body=b"").expect(200)

"""The certificates of a server, one by one: recognised by the record, else inspected, else issued."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.pki import files
from clusterregistry.apiserver.pki.files import Facts, Layout, Record

if TYPE_CHECKING:
    from clusterregistry.apimachinery.certificates import Authority, Key

RENEW_BEFORE = 90 * 86400.0
ADMIN = "admin"
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class ServingNames:
    """The names for the serving certificate. ``further`` are those of them that the operator asked for."""

    names: tuple[str, ...]
    further: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A certificate that our CA signs, and what it has to be good for."""

    name: str
    title: str
    certificate: Path
    key: Path
    names: tuple[str, ...] = ()
    further: tuple[str, ...] = ()

    @property
    def remedy(self) -> str:
        return f"remove {self.certificate} and {self.key}: the next start makes new ones"

    def good(self, facts: Facts | None, *, now: float) -> bool:
        """Names that the machine had before do no harm; those that the operator took back must go."""
        if facts is None or facts.not_after - now <= RENEW_BEFORE:
            return False
        return set(self.names) <= set(facts.names) and set(self.further) == set(facts.further)


class Store:
    """The certificates on disk, seen through a record, which it brings up to date. ``made`` is for people."""

    def __init__(  # noqa: PLR0913 - most of them by keyword
        self,
        layout: Layout,
        record: Record,
        *,
        now: float,
        serving: ServingNames | None,
        administrator: bool,
        program: str,
    ) -> None:
        """``serving`` is None when the operator brings a serving certificate."""
        self._program = program
        self.layout = layout
        self._serving = serving
        self._administrator = administrator
        self.now = now
        self.record = record
        self.made: list[str] = []

    def in_order(self) -> bool:
        """Whether the record knows all files as they are, and all are good for a while. Reads, never parses."""
        ca = self._recorded("ca", self._ca_digest())
        if ca is None or ca.not_after <= self.now:
            return False
        return all(leaf.good(self._recorded(leaf.name, self._digest(leaf)), now=self.now) for leaf in self._leaves())

    def ensure_all(self) -> None:
        """Makes, inspects and renews."""
        self._ensure_ca()
        for leaf in self._leaves():
            self._ensure_leaf(leaf)

    def first_end(self) -> float:
        """When the first of the certificates ends. For a store that is in order."""
        return min(self.record.facts[leaf.name].not_after for leaf in self._leaves())

    def _leaves(self) -> list[Leaf]:
        files_of = self.layout
        admin = Leaf(
            name=ADMIN,
            title="client certificate of the administrator",
            certificate=files_of.admin_certificate,
            key=files_of.admin_key,
        )
        clients = [admin] if self._administrator else []
        if self._serving is None:
            return clients
        serving = Leaf(
            name="serving",
            title="serving certificate",
            certificate=files_of.serving_certificate,
            key=files_of.serving_key,
            names=self._serving.names,
            further=self._serving.further,
        )
        return [serving, *clients]

    # The record

    def _recorded(self, name: str, digest: str) -> Facts | None:
        facts = self.record.facts.get(name)
        return facts if facts is not None and facts.digest == digest else None

    def _remember(self, name: str, facts: Facts) -> Facts:
        self.record = Record({**self.record.facts, name: facts}, self.record.kubeconfig)
        return facts

    def _ca_digest(self) -> str:
        return files.digest(files.read(self.layout.ca_certificate), files.read(self.layout.ca_key))

    def _digest(self, leaf: Leaf) -> str:
        # The CA counts in: a leaf that was fine under another CA is foreign under this one.
        return files.digest(files.read(leaf.certificate), files.read(leaf.key), files.read(self.layout.ca_certificate))

    # The authority

    @property
    def ca_remedy(self) -> str:
        """What to do about an authority that cannot be used."""
        layout = self.layout
        return (
            f"restore {layout.ca_certificate} and {layout.ca_key} from a backup; or remove both, {layout.cert_dir} and "
            f"{layout.kubeconfig} to start with a new CA, which every client then needs"
        )

    def _ensure_ca(self) -> None:
        if files.read(self.layout.ca_certificate) is None:
            self._refuse_to_replace_a_lost_ca()
            self._make_ca()
        facts = self._recorded("ca", self._ca_digest()) or self._inspect_ca()
        if facts.not_after <= self.now:
            raise CertificateError(f"the CA in {self.layout.ca_certificate} has expired", remedy=self.ca_remedy)

    def _refuse_to_replace_a_lost_ca(self) -> None:
        """Certificates that are there were signed by a CA that is not: a new one would cut off every client."""
        held = [path for path in (self.layout.serving_certificate, self.layout.admin_certificate) if files.read(path)]
        if held:
            raise CertificateError(
                f"{self.layout.ca_certificate} is missing, and {held[0]} was signed by it", remedy=self.ca_remedy
            )

    def _make_ca(self) -> None:
        from clusterregistry.apimachinery import certificates  # noqa: PLC0415 - slow import, needed only to make things

        key = self._key_for(self.layout.ca_key, remedy=self.ca_remedy)
        made = certificates.new_authority(key, now=self.now, program=self._program)
        files.write(self.layout.ca_certificate, certificates.certificate_pem(made.certificate), mode=files.PUBLIC)
        self.made.append(f"{self.layout.ca_certificate} (certificate authority, with {self.layout.ca_key.name})")

    def _inspect_ca(self) -> Facts:
        from clusterregistry.apimachinery import certificates  # noqa: PLC0415

        path, content = self.layout.ca_certificate, files.read(self.layout.ca_certificate) or b""
        held = certificates.certificate(path, content, remedy=self.ca_remedy)
        certificates.require_authority(path, held, remedy=self.ca_remedy)
        private = files.read(self.layout.ca_key)
        if private is not None:  # without the key a server runs until something is to be renewed
            key = certificates.key(self.layout.ca_key, private, remedy=self.ca_remedy)
            certificates.require_match(path, held, key, remedy=self.ca_remedy)
        return self._remember("ca", Facts(self._ca_digest(), held.not_valid_after_utc.timestamp()))

    def _authority(self) -> Authority:
        from clusterregistry.apimachinery import certificates  # noqa: PLC0415

        path, content = self.layout.ca_certificate, files.read(self.layout.ca_certificate) or b""
        private = files.read(self.layout.ca_key)
        if private is None:
            raise CertificateError(
                f"{self.layout.ca_key} is missing, and a certificate has to be signed", remedy=self.ca_remedy
            )
        held = certificates.certificate(path, content, remedy=self.ca_remedy)
        key = certificates.key(self.layout.ca_key, private, remedy=self.ca_remedy)
        return certificates.Authority(held, key)

    # The leaves

    def _ensure_leaf(self, leaf: Leaf) -> None:
        if files.read(leaf.certificate) is None:
            self._issue(leaf, "")
            return
        facts = self._recorded(leaf.name, self._digest(leaf)) or self._inspect(leaf)
        if not leaf.good(facts, now=self.now):
            self._issue(leaf, ", renewed")

    def _inspect(self, leaf: Leaf) -> Facts:
        from clusterregistry.apimachinery import certificates  # noqa: PLC0415

        private = files.read(leaf.key)
        if private is None:
            raise CertificateError(f"{leaf.key} is missing", remedy=leaf.remedy)
        held = certificates.certificate(leaf.certificate, files.read(leaf.certificate) or b"", remedy=leaf.remedy)
        key = certificates.key(leaf.key, private, remedy=leaf.remedy)
        certificates.require_match(leaf.certificate, held, key, remedy=leaf.remedy)
        ca_content = files.read(self.layout.ca_certificate) or b""
        ca = certificates.certificate(self.layout.ca_certificate, ca_content, remedy=self.ca_remedy)
        certificates.require_issued_by(leaf.certificate, held, ca, remedy=leaf.remedy)
        not_after = held.not_valid_after_utc.timestamp()
        facts = Facts(self._digest(leaf), not_after, certificates.names(held), leaf.further)
        return self._remember(leaf.name, facts)

    def _issue(self, leaf: Leaf, how: str) -> None:
        authority = self._authority()
        # A renewal keeps the key: then only one file changes, and certificate and key agree at every moment.
        key = self._key_for(leaf.key, remedy=leaf.remedy)
        files.write(leaf.certificate, self._signed(leaf, authority, key), mode=files.PUBLIC)
        self._inspect(leaf)
        self.made.append(f"{leaf.certificate} ({leaf.title}{how})")

    def _signed(self, leaf: Leaf, authority: Authority, key: Key) -> bytes:
        from clusterregistry.apimachinery import certificates  # noqa: PLC0415

        if leaf.names:
            return certificates.serving_certificate(
                authority, key, names=leaf.names, now=self.now, program=self._program
            )
        return certificates.client_certificate(authority, key, user=ADMIN, group=MASTERS, now=self.now)

    def _key_for(self, path: Path, *, remedy: str) -> Key:
        """The key that is there, or a new one."""
        from clusterregistry.apimachinery import certificates  # noqa: PLC0415

        held = files.read(path)
        if held is not None:
            return certificates.key(path, held, remedy=remedy)
        key = certificates.new_key()
        files.write(path, certificates.key_pem(key), mode=files.SECRET)
        return key

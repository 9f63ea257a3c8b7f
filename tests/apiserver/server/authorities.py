"""Certificate authorities made with the openssl command, as operators make them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

EC = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")
RSA = ("rsa:2048",)
ED25519 = ("ed25519",)
AUTHORITY = "basicConstraints=critical,CA:true\nkeyUsage=critical,keyCertSign,cRLSign\n"
FOR_CLIENTS = "extendedKeyUsage=clientAuth\n"


def openssl(*arguments: object) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@dataclass(frozen=True)
class Holder:
    """A certificate with its key, and the certificates between it and a root, in files of their own."""

    directory: Path
    name: str
    above: tuple[Path, ...] = ()

    @property
    def certificate(self) -> Path:
        return self.directory / f"{self.name}.crt"

    @property
    def key(self) -> Path:
        return self.directory / f"{self.name}.key"

    @property
    def chain(self) -> Path:
        """The certificate with those above it."""
        path = self.directory / f"{self.name}.chain"
        path.write_text("".join(each.read_text() for each in (self.certificate, *self.above)))
        return path

    def issue(
        self, name: str, *, subject: str = "", extensions: str = FOR_CLIENTS, days: int = 10, kind: tuple[str, ...] = EC
    ) -> Holder:
        """Somebody signed by this one. ``subject`` is openssl's, such as ``/O=devs/CN=jane``."""
        between = () if self.above == () and self._is_root() else (self.certificate, *self.above)
        made = Holder(self.directory, name, between)
        request, wanted = self.directory / f"{name}.csr", self.directory / f"{name}.ext"
        wanted.write_text(extensions)
        openssl("req", "-new", "-newkey", *kind, "-nodes", "-keyout", made.key, "-out", request,
                "-subj", subject or f"/CN={name}")  # fmt: skip
        # An empty file of extensions makes a certificate of version 1, as the shortest command line does.
        extended = ("-extfile", wanted) if extensions else ()
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
                "-days", days, "-out", made.certificate, *extended)  # fmt: skip
        return made

    def authority(self, name: str, *, extensions: str = AUTHORITY) -> Holder:
        return self.issue(name, extensions=extensions)

    def _is_root(self) -> bool:
        return (self.directory / f"{self.name}.root").exists()


def root(directory: Path, name: str, *, subject: str = "") -> Holder:
    directory.mkdir(parents=True, exist_ok=True)
    made = Holder(directory, name)
    openssl("req", "-x509", "-newkey", *EC, "-nodes", "-keyout", made.key, "-out", made.certificate,
            "-subj", subject or f"/CN={name}", "-days", "10",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
    (directory / f"{name}.root").touch()
    return made

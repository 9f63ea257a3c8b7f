"""Credentials of all common kinds, made up but well-formed, and texts that only resemble them.

They are put together from parts, so that nobody who scans this repository for credentials finds any.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import uuid
from functools import cache

import yaml
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from tests.apiserver.authn.certificates import issued, root


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def wrapped(text: str) -> str:
    """In lines, as the command base64 writes it."""
    return base64.encodebytes(text.encode()).decode()


def letters(
    count: int, *, seed: str = "seed", digits: str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
) -> str:
    """So many letters that look random and are always the same."""
    stream = hashlib.shake_256(seed.encode()).digest(count)
    return "".join(digits[byte % len(digits)] for byte in stream)


def _upper(count: int) -> str:
    return letters(count, digits="ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")


@cache
def private_keys() -> dict[str, str]:
    """One of each form and kind, by its name."""
    rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    ec_key, ed_key = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    dsa_key = dsa.generate_private_key(1024)
    plain, sealed = NoEncryption(), BestAvailableEncryption(b"passphrase")
    old, new, ssh = PrivateFormat.TraditionalOpenSSL, PrivateFormat.PKCS8, PrivateFormat.OpenSSH
    pem = Encoding.PEM
    return {
        "RSA, PKCS #1": rsa_key.private_bytes(pem, old, plain).decode(),
        "RSA, PKCS #1, encrypted": rsa_key.private_bytes(pem, old, sealed).decode(),
        "RSA, PKCS #8": rsa_key.private_bytes(pem, new, plain).decode(),
        "RSA, PKCS #8, encrypted": rsa_key.private_bytes(pem, new, sealed).decode(),
        "EC, SEC 1": ec_key.private_bytes(pem, old, plain).decode(),
        "EC, PKCS #8": ec_key.private_bytes(pem, new, plain).decode(),
        "DSA": dsa_key.private_bytes(pem, old, plain).decode(),
        "Ed25519, PKCS #8": ed_key.private_bytes(pem, new, plain).decode(),
        "Ed25519, OpenSSH": ed_key.private_bytes(pem, ssh, plain).decode(),
        "RSA, OpenSSH": rsa_key.private_bytes(pem, ssh, plain).decode(),
    }


def jwt(**claims: object) -> str:
    def part(content: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    return f"{part({'alg': 'RS256', 'kid': 'k1'})}.{part(claims)}.{letters(342)}"


def service_account_token() -> str:
    return jwt(iss="kubernetes/serviceaccount", sub="system:serviceaccount:default:default", exp=1_900_000_000)


def kubeconfig(**user: str) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
            "users": [{"name": "u", "user": user}],
        }
    )


@cache
def credentials() -> dict[str, str]:
    """By what they are."""
    keys = private_keys()
    pat, sha = letters(36), base64.b64encode(hashlib.sha1(b"password").digest()).decode()
    docker = {"auths": {"registry.example.com": {"auth": encoded("robot:" + letters(24))}}}
    account = {
        "type": "service_account",
        "project_id": "p",
        "private_key_id": letters(40),
        "private_key": keys["RSA, PKCS #8"],
    }
    found = {f"private key ({name})": key for name, key in keys.items()}
    found |= {f"private key ({name}), base64": encoded(key) for name, key in keys.items()}
    return found | {
        "private key, base64 in lines": wrapped(keys["RSA, PKCS #1"]),
        "private key behind its certificate": certificate() + keys["EC, SEC 1"],
        "private key behind its certificate, base64": encoded(certificate() + keys["EC, SEC 1"]),
        "private key with attributes before it, base64": encoded(
            "Bag Attributes\n  friendlyName: x\n" + keys["EC, PKCS #8"]
        ),
        "private key of PuTTY": "PuTTY-User-Key" + "-File-3: ssh-ed25519\nEncryption: none\n",
        "private key of PGP": "-----BEGIN PGP PRIVATE " + "KEY BLOCK-----\n\n" + letters(60),
        "private key of age": "AGE-SECRET" + "-KEY-1" + _upper(58),
        "JWT": jwt(sub="jane"),
        "JWT of a service account": service_account_token(),
        "JWT of a service account, base64": encoded(service_account_token()),
        "AWS access key": "AKIA" + _upper(16),
        "AWS session key": "ASIA" + _upper(16),
        "AWS credentials file": "[default]\naws_secret_access" + f"_key = {letters(40)}\n",
        "AWS session as JSON": '{"Secret' + f'AccessKey": "{letters(40)}"}}',
        "GCP service account": json.dumps(account),
        "GCP service account, base64": encoded(json.dumps(account)),
        "GCP access token": "ya29." + letters(120),
        "GCP API key": "AIza" + letters(35),
        "GCP client secret": "GOCSPX" + "-" + letters(28),
        "Azure storage": f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={letters(86)}==;EndpointSuffix=core",
        "Azure service bus": "Endpoint=sb://x.example.com/;SharedAccessKeyName=r;SharedAccess" + f"Key={letters(43)}=",
        "Azure client secret": "abc8Q" + "~" + letters(34),
        "Azure SAS": "https://x.blob.example.com/c?sv=2022-11-02&sp=r&sig" + f"={letters(43)}%3D",
        **{f"GitHub {kind}": f"gh{kind}" + "_" + pat for kind in "pousr"},
        "GitHub fine-grained": "github" + f"_pat_{letters(22)}_{letters(59)}",
        "GitLab": "glpat" + "-" + letters(20),
        "GitLab deploy": "gldt" + "-" + letters(20),
        "Slack bot": "xoxb" + f"-123456789012-1234567890123-{letters(24)}",
        "Slack app": "xapp" + f"-1-A0123456789-1234567890123-{letters(64)}",
        "Slack webhook": "https://hooks.slack" + f".com/services/T{_upper(8)}/B{_upper(8)}/{letters(24)}",
        "Vault": "hvs" + "." + letters(90),
        "kubeconfig with a key": kubeconfig(**{"client-key-data": encoded(keys["RSA, PKCS #1"])}),
        "kubeconfig with a token": kubeconfig(token=service_account_token()),
        "kubeconfig with an opaque token": kubeconfig(token=letters(32)),
        "kubeconfig with a password": kubeconfig(username="admin", password=letters(20)),
        "kubeconfig with a password, base64": encoded(kubeconfig(username="admin", password=letters(20))),
        "kubeconfig as JSON": json.dumps(yaml.safe_load(kubeconfig(token=letters(32)))),
        "URL with a password": f"https://admin:{letters(12)}@api.example.com:6443/",
        "URL of a database": f"postgres://registry:{letters(12)}@db.example.com/registry?sslmode=require",
        "URL with a password only": f"redis://:{letters(12)}@cache.example.com:6379/0",
        "htpasswd, bcrypt": "admin:$2y$" + f"05${letters(53)}",
        "htpasswd, MD5": "admin:$apr1" + f"${letters(8)}${letters(22)}",
        "htpasswd, SHA-1": "admin:{SHA}" + sha,
        "shadow, SHA-512": "$6" + f"${letters(16)}${letters(86)}",
        "shadow, yescrypt": "$y" + f"$j9T${letters(22)}${letters(43)}",
        "dockerconfigjson": json.dumps(docker),
        "dockerconfigjson, base64": encoded(json.dumps(docker)),
        "dockerconfigjson, indented, base64": encoded(json.dumps(docker, indent=2)),
        "Authorization header": "Authorization: Basic " + encoded("admin:" + letters(12)),
        "command with a header": f"curl -H 'Authorization: Bearer {letters(40)}' https://example.com",
    }


@cache
def certificate() -> str:
    return root("some authority").pem


@cache
def innocent() -> dict[str, str]:
    """By what they are."""
    chain = certificate() + root("another").pem + issued((), by=root("third")).pem
    public = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
    last_applied = {
        "apiVersion": "clusterregistry.k8s.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "a", "annotations": {"example.com/users": "all users of clusters"}},
        "spec": {
            "kubernetesApiEndpoints": {
                "caBundle": encoded(chain),
                "serverEndpoints": [{"serverAddress": "10.0.0.1:443"}],
            },
            "authInfo": {
                "providers": [{"name": "x", "config": {"token": "vault:secret/clusters/a", "kind": "Config"}}]
            },
        },
    }
    return {
        "certificate": certificate(),
        "chain": chain,
        "certificate, base64": encoded(certificate()),
        "chain, base64": encoded(chain),
        "chain, base64 in lines": wrapped(chain),
        "public key": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode(),
        "SSH public key": public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode(),
        "URL": "https://api.example.com:6443/path;x=1?q=a&signature=b#frag",
        "URL with a user": "https://jane@example.com/",
        "URL with an address in its query": "https://example.com:8443?contact=ops@example.com",
        "URL with an address in its path": "https://example.com:8443/teams/ops@example.com",
        "URL of IPv6": "https://[2001:db8::1]:6443/",
        "git over SSH": "git@github.example.com:fleet/clusters.git",
        "address": "ops@example.com",
        "uuid": str(uuid.UUID(int=0x1234567890ABCDEF1234567890ABCDEF)),
        "git commit": hashlib.sha1(b"commit").hexdigest(),
        "digest": hashlib.sha256(b"x").hexdigest(),
        "digest, base64": base64.b64encode(hashlib.sha256(b"x").digest()).decode(),
        "integrity": "sha512-" + base64.b64encode(hashlib.sha512(b"x").digest()).decode(),
        "image": f"registry.example.com:5000/fleet/agent:v1.2.3@sha256:{hashlib.sha256(b'i').hexdigest()}",
        "etag": f'W/"{hashlib.md5(b"e").hexdigest()}"',
        "time": dt.datetime(2026, 1, 2, tzinfo=dt.UTC).isoformat(),
        "version": "v1.29.4-gke.1043002",
        "prose": "The token is in Vault; ask the owners of the clusters for the password. Basic authentication is off.",
        "prose about keys": "PRIVATE KEYS go to /etc/pki, see https://wiki.example.com/x: do not mail them",
        "prices": "$25 for 6 nodes, $6 for one",
        "shell": "export TOKEN=$(cat /var/run/token); echo ${TOKEN}",
        "words": "internationalization/of/distributedsystems",
        "JSON": '{"auth": {"type": "oidc"}, "token": "file:/run/token", "password": null}',
        "JSON, base64": encoded('{"auths": {}, "users": "all of them", "note": "nothing in here"}'),
        "JSON that begins like a JWT": encoded('{"some": "json"}'),
        "kubeconfig without a user": kubeconfig(tokenFile="/var/run/token"),
        "kubeconfig with a plugin": kubeconfig(exec="aws-iam-authenticator", username="jane"),
        "role": "arn:aws:iam::123456789012:role/AKIA",
        "secret's name": "projects/p/secrets/registry-token/versions/latest",
        "last applied configuration": json.dumps(last_applied),
    }

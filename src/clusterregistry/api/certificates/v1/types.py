"""The schema of CertificateSigningRequest, and the words that its fields use."""

from __future__ import annotations

from clusterregistry.apimachinery.schema.schemas import Array, Integer, Map, Object, String

CERTIFICATE_SIGNING_REQUEST_KIND = "CertificateSigningRequest"

APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
"""The condition types that Kubernetes gives a meaning to."""

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
"""The signer of client certificates for the API server."""

LEGACY_SIGNER = "kubernetes.io/legacy-unknown"

CLIENT_AUTH, DIGITAL_SIGNATURE, KEY_ENCIPHERMENT = "client auth", "digital signature", "key encipherment"

USAGES = (
    "any",
    "cert sign",
    CLIENT_AUTH,
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    DIGITAL_SIGNATURE,
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    KEY_ENCIPHERMENT,
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
"""The key usages that a request can name, in order."""

SPEC = Object(
    type_name="v1.CertificateSigningRequestSpec",
    description=(
        "Spec is the request. It cannot be changed; the server sets the user who made it, whatever the client sends."
    ),
    fields={
        "request": String(
            format="byte", description="A PKCS#10 request in a PEM block of type CERTIFICATE REQUEST, as base64."
        ),
        "signerName": String(
            description=(
                "Who is to sign: DOMAIN/PATH. The server itself signs for kubernetes.io/kube-apiserver-client, whose "
                "certificates are those of its users."
            )
        ),
        "expirationSeconds": Integer(
            format="int32",
            description="How long the certificate is wanted to be valid: 600 at least. A signer may shorten it.",
        ),
        "usages": Array(
            items=String(type_name="v1.KeyUsage"),
            description="What the certificate is for. One for a client has: digital signature, client auth.",
        ),
        "username": String(description="The name of the user who made the request; set by the server."),
        "uid": String(description="The uid of the user who made the request; set by the server."),
        "groups": Array(items=String(), description="The groups of the user who made the request; set by the server."),
        "extra": Map(
            values=Array(items=String(), type_name="v1.ExtraValue"),
            description="Further attributes of the user who made the request; set by the server.",
        ),
    },
    required=("request", "signerName"),
    pointers=("expirationSeconds",),
)

CONDITION = Object(
    type_name="v1.CertificateSigningRequestCondition",
    description="CertificateSigningRequestCondition says what was decided about a request.",
    fields={
        "type": String(
            type_name="v1.RequestConditionType",
            description=(
                "Approved or Denied, set through /approval and never both; Failed, set by the signer through /status. "
                "None of these is ever removed."
            ),
        ),
        "status": String(
            type_name="v1.ConditionStatus",
            description="True, False or Unknown. Approved, Denied and Failed are always True.",
        ),
        "reason": String(description="A word for programs that says why."),
        "message": String(description="A sentence for people that says why."),
        "lastUpdateTime": String(format="date-time", description="When the condition was last written."),
        "lastTransitionTime": String(format="date-time", description="When the status last became another one."),
    },
    required=("type", "status"),
)

STATUS = Object(
    type_name="v1.CertificateSigningRequestStatus",
    description="Status is what was decided about the request, and the certificate once it is issued.",
    fields={
        "conditions": Array(
            items=CONDITION,
            list_type="map",
            map_keys=("type",),
            merges_in_patches=False,
            description="The decisions: approved, denied, failed.",
        ),
        "certificate": String(
            format="byte",
            description="The certificate in PEM, as base64, with intermediate ones behind it. It cannot be changed.",
        ),
    },
)

CERTIFICATE_SIGNING_REQUEST = Object(
    type_name="v1.CertificateSigningRequest",
    description=(
        "CertificateSigningRequest asks for a certificate. It is approved or denied by a person or a program with that "
        "right, and then signed by its signer."
    ),
    fields={"spec": SPEC, "status": STATUS},
    required=("spec",),
    always_written=("status",),
)

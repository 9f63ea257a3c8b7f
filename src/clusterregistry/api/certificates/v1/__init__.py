"""Version v1 of CertificateSigningRequest: schema and validation, as in kube-apiserver.

Pure functions over wire objects; must not know storage, rights or private keys.
"""

VERSION = "v1"

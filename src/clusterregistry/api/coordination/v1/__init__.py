"""Version v1 of Lease: schema and validation, as in kube-apiserver.

Pure functions over wire objects; must not know storage.
"""

VERSION = "v1"

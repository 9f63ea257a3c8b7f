"""Version v1 of roles and bindings, in namespaces and without: schemas, defaults and validation, as in kube-apiserver.

Pure functions over wire objects; must not know storage, nor evaluate rules.
"""

VERSION = "v1"

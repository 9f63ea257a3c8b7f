"""Version v1 of Namespace and Event: schemas, defaults and validation, as in kube-apiserver.

Pure functions over wire objects; must not know storage.
"""

VERSION = "v1"

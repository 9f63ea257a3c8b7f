"""Version v1 of ClusterRole and ClusterRoleBinding: schemas, defaults and validation, as in kube-apiserver.

Pure functions over wire objects; must not know storage, nor evaluate rules.
"""

VERSION = "v1"

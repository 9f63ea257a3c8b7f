"""Version v1 of ClusterRole and ClusterRoleBinding: schemas, defaults and validation, as in kube-apiserver.

Pure functions over wire objects; must not know who may write them, nor what they allow.
"""

VERSION = "v1"

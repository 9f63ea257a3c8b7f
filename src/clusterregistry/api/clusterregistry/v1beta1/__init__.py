"""Version v1beta1 of the Cluster kind: its schema, its validation, and the conversion to and from v1alpha1.

Pure functions over wire objects; must not know storage or authorization.
"""

VERSION = "v1beta1"

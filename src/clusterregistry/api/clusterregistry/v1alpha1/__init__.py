"""Version v1alpha1 of the Cluster kind: its schema, its defaults, and the validation that a schema cannot express.

It is the union of what releases v0.0.1 to v0.0.6 called v1alpha1. Pure functions over wire objects; must not
know storage or authorization.
"""

VERSION = "v1alpha1"

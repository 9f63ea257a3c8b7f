"""Version v1 of the Events of ``events.k8s.io``: the schema, and the conversion to and from Events of the core group.

Pure functions over wire objects; must not know storage. What is valid is in ``api.core.v1.event_validation``.
"""

VERSION = "v1"

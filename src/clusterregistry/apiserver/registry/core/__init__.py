"""The resources of the core group: Namespace, and Event, which ``events.k8s.io`` serves as well."""

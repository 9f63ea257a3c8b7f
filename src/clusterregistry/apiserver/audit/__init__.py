"""The audit log: ``audit.k8s.io/v1`` events in lines of JSON.

``backend`` opens the log. ``policy`` decides what is recorded, ``trail`` collects it while a request is served,
``event_queue`` passes it to the one thread that renders (``event``) and writes it. No request may wait or fail for
the audit log, and no secret may reach it (``redaction``). The package must not know resources, storage or sockets.
"""

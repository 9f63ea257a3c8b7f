"""The audit log: who did what, when, and what came of it, as ``audit.k8s.io/v1`` events in lines of JSON.

``policy`` says what is recorded (``default_policy`` unless a file does), ``trails`` notes it on the way of a request,
``queueing`` hands it to the one thread that renders and writes it. Nothing here may make a request wait or fail, and
nothing secret may reach the log (``masking``). It must not know resources, storage or sockets.
"""

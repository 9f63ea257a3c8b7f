"""Access control over the whole chain: every kind of credentials, every request, every kind of rule.

The expected results come from ``oracle``, which states the rules plainly and shares nothing with the server.
"""

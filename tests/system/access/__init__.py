"""Who may do what, over the whole chain: every way to be somebody, every request, every kind of rule.

What is expected comes from ``oracle``, which states the rules plainly and shares nothing with the server.
"""

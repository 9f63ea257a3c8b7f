"""What requests cost in operations of the interpreter: a figure that no other load on the machine changes.

``operations`` counts, ``servers`` is a server whose operations are counted, ``paths`` are the requests that have a
budget in ``budgets.toml``, and ``make budgets`` writes that file.
"""

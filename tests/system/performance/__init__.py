"""What requests cost in operations of the interpreter: a figure that no other load on the machine changes.

``counting`` counts, ``servers`` is a server whose work is counted, ``paths`` are the requests that have a budget in
``budgets.toml``, and ``make budgets`` writes that file anew.
"""

"""From a request to an answer: one verb a file.

``request_info`` says what is asked, ``query_options`` how, ``negotiation`` in which representation;
``decoding`` reads bodies, ``representations`` writes answers. The verbs call ``registry.store`` for
what happens and know nothing of how it is stored. Who may ask is the filters' business; handlers are told which
objects a user may see, and ask for the right to create where a PUT or an apply does (``authorizing``).
"""

"""From a request to an answer: one verb a file.

``request_info`` says what is asked, ``query_options`` how, ``negotiation`` in which representation;
``decoding`` reads bodies, ``representations`` writes answers. The verbs call ``registry.store`` for
what happens and know nothing of how it is stored, nor of who may ask (the filters have seen to that).
"""

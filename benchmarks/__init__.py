"""Load on a server of the clusters API, ours and kube-apiserver's, and what it costs the server.

``python -m benchmarks`` is the entry; what it measures stands in ``scenarios.py``, what is wanted in ``goals.toml``.
The client is made of the standard library alone, so that it is cheap and measures nothing of ours. Servers are started
from outside, as a user would: nothing here may reach into the product.
"""

"""Agents: clients for a member behind NAT, which observe their own cluster from inside and report to the registry.

``join`` makes the identity of an agent with a bootstrap token, ``join-token`` makes the tokens, and ``agent`` is the
agent itself. All of them only connect to others: nothing listens. The server decides what an agent may do.
"""

"""The agent: runs beside a cluster that cannot be reached from outside, and writes its status with its own identity.

It opens outbound connections only. It may write its own cluster and nothing else, which the server enforces.
"""

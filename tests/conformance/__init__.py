"""Compares the real server with what was recorded from kube-apiserver; README.md has the whole of it."""

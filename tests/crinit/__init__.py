"""Tests of crinit. Those that need a real kube-apiserver are marked e2e and skipped, loudly, where there is none."""

"""Tests of crinit. Those that need a real kube-apiserver are marked e2e, and skipped unless `make e2e` runs them."""

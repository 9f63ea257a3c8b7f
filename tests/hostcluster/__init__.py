"""Talking to a host cluster; tests/e2e has the same with a real one."""

"""Calls of a host cluster; tests/system/e2e has the same with a real one."""

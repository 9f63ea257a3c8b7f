"""The API types: what is on the wire. Pure data and pure functions: no I/O, no clock, no HTTP."""

"""Fault injection: load on a real registry while its processes are killed and paused, and a check of all answers.

``workload`` writes, reads and watches over HTTP and records all of it; a ``nemesis`` injects faults meanwhile;
``verdict`` checks the record. None of them knows how the registry stores, how many replicas answer, or what the faults
are: they get addresses and process ids. ``crash_run`` combines them for one server and ``kill -9``, ``fault_run`` for
several replicas on an etcd of several members.

The check uses nothing but the record: no request to the server, and none of its files.
"""

"""Work on a real registry while it is being harmed, and a judgement on what it answered.

``workload`` writes, reads and watches over HTTP and records all of it; a ``nemesis`` does harm meanwhile;
``checking`` judges the record. None of them knows how the registry stores, how many replicas answer, or what
the harm is: they get addresses and process ids. ``crashing`` puts them together for one server and ``kill -9``,
``striking`` for several replicas on an etcd of several members.

The judgement uses nothing but the record. It must not ask the server anything, nor look into its files.
"""

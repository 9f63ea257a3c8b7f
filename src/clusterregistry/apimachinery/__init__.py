"""What every Kubernetes-style program shares: objects, schemas, codecs, patches, managed fields.

Pure functions and values: no I/O, no clock, no sockets. Imports nothing else of the project.
"""

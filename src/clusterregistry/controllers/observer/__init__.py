"""The observer: probes clusters within deadlines, and reports what it found.

It is given clusters (wire objects) and credentials, and reports observations. It writes nothing, and knows no registry.
Everything that a cluster answers is hostile until proved otherwise: bounded before it is decoded.
"""

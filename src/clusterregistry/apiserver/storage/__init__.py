"""Where objects are kept: a revisioned key-value log, as etcd is one.

``interface`` is the port, ``errors`` what it may raise, ``keys`` how objects are named in it. The engines
(``sqlite``, ``etcd``) and the ``cacher`` around them all implement the port and do not know of each other.
Nothing here knows what the bytes mean, except that ``revisions`` can put a revision into them.
"""

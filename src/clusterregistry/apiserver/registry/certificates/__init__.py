"""CertificateSigningRequests: their resource, what approving and signing needs, and the controllers that act on them.

``resource`` declares the kind, ``admission`` decides who may approve and sign, ``signer`` runs the controllers:
it signs approved requests for client certificates (``issuance``), and removes old ones (``cleaner``). Nothing here
authenticates by a certificate: ``authn`` does.
"""

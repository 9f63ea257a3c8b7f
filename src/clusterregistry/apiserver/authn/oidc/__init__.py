"""OpenID Connect: tokens that an issuer has signed, checked here without asking it.

``tokens`` takes a token apart, ``claims`` reads who it is about, ``keys`` reads and uses the issuer's keys: all pure.
``issuer`` fetches the keys, ``authenticator`` brings them together. Signatures and keys are PyJWT's and cryptography's
business; what a token must hold is ours, in kube-apiserver's rules. Distributed claims are not supported: an issuer
has to put the groups into the token.
"""

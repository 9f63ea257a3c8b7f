"""OpenID Connect: authenticates tokens that an issuer has signed, without a call to the issuer for each token.

``claims`` parses a token and reads its user, ``issuer`` fetches the issuer's keys and verifies signatures,
``authenticator`` combines them. PyJWT and cryptography verify signatures; the rules for claims are kube-apiserver's.
Distributed claims are not supported: an issuer has to put the groups into the token.
"""

"""Reviews: objects that are created, answered at once and never stored (TokenReview, SubjectAccessReview and others).

``interface`` is the port. A review decides nothing itself: it calls authentication or authorization and returns the
result as an API object. It knows neither storage nor HTTP.
"""

"""Reviews: questions that are created as objects are, answered at once, and never stored.

A port (``interface``) and one kind a file. A review decides nothing itself: it asks authentication or authorization
and puts what they say into the words of the API. It knows neither storage nor HTTP.
"""

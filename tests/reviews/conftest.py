from hypothesis import settings

# How long an example takes says more about the machine's load than about the code.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")

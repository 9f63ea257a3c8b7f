"""The whole product behind a real kube-apiserver, used with a real kubectl. Run by ``make e2e``.

Where the programs for it are not there, the tests are skipped and say what is missing.
"""

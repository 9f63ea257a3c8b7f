"""What developers and CI run beside the product: fetching real programs, conformance. Nothing in src imports it."""

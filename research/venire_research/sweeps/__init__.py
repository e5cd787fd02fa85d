"""Many runs: points, where they run, and the store of results."""

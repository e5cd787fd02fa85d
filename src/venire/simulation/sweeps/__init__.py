"""Many runs: points, where they run, and what is kept of them."""

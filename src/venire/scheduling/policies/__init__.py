"""The policies, a file each: `greedy` is Algorithm 1."""

"""How work is handed out and labels are taken: leases, labels, who waits."""

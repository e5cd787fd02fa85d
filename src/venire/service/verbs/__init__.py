"""What a client may do: streams, items, work, reads, deletion."""

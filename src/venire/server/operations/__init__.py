"""The operations of the service: streams, items, labelling, reads, deletion."""

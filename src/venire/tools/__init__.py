"""Tools that know nothing of labels: the compiler's settings, CSV rows, seeded draws."""

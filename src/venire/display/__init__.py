"""How results look in a notebook: tables in HTML, and what plots share."""

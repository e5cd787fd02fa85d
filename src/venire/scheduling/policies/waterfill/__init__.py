"""Water-filling: a slot sells its evidence at one price."""

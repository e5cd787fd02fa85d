"""How much could somebody who knows the future earn? Schedules by prices."""

"""What schedules are compared with: random, in turn, equal overlap."""

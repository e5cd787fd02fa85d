"""What can be earned with knowledge of the future: schedules guided by prices."""

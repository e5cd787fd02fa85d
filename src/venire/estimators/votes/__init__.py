"""What do the labels say if hardly anything is learned? Votes."""

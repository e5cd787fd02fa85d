"""What the paper defines and proves, as functions: accuracy, utility, lemmas."""

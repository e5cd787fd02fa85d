"""What the experiments share: label sets, scores, statistics, drawing."""

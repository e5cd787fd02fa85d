"""The compiled passes over a table of labels that estimators share."""

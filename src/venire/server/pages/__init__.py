"""The pages: console, labelling page, sign-in, documentation."""

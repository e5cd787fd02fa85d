"""A little truth: what gold says about the labelers, the aggregates, and how sure to be.

logit       a regression with a prior: weights, their evidence, predictions without each item
sample      the gold items: their truth, what was said of them, what each aggregate says
candidates  the explanations: an aggregate, one labeler, a vote that gold has taught
mixture     all of them, weighted by how well they predict gold, and one temperature
teaching    an estimator, taught by gold
questions   the items whose truth would tell most
"""

"""A little truth: what gold says about the labelers, the aggregates, and how sure to be.

logit       a regression with a prior: weights, their evidence, predictions without each item
sample      the gold items: their truth, what was said of them, what each aggregate says
calibration how sure to be: a temperature, a hazard, a ceiling
mixture     the explanations: aggregates, labelers alone, votes that gold has taught, weighted by
            how well they predict gold
teaching    an estimator, taught by gold
"""

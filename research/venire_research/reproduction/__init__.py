"""What the figures of the paper share.

sources.py     the streams: synthetic, Bird, DOG in two classes and in four
measures.py    what is measured at one point of a sweep
literal.py     Algorithm 1 with the paper's `Break`, for the erratum
exact.py       the exact accuracy of weighted majority
trials.py      runs of Algorithms 1 and 2 over a grid of lengths and seeds; figures of them
search.py      the best length, chosen on other seeds than those it is evaluated on
claims.py      a claim, what was measured, and whether it holds
figure.py      the contract of a figure, and how figures are found
regret.py      figures of regret and ratio against the horizon
learning.py    figures of error and utility against the length of the learning phase
report.py      report.md and report.html
runner.py      from the points to the files
"""

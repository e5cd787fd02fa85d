"""What the figures of the paper share.

data.py        the real label sets: where they are, and what to do where they are not
sources.py     the streams: synthetic, Bird, DOG in two classes and in four
measures.py    what is measured at one point of a sweep
fingerprint.py a digest of the sources, part of what a result is kept under
literal.py     Algorithm 1 with the paper's `Break`, to be shown failing
exact.py       the exact accuracy of weighted majority
trials.py      runs of Algorithms 1 and 2 over lengths of the learning phase and seeds
search.py      the best length, chosen on other seeds than those it is judged on
statistics.py  means with intervals, and how something grows
claims.py      a claim, what was measured, and whether it holds
figure.py      the contract of a figure, and how figures are found
regret.py      figures of regret and ratio against the horizon
learning.py    figures of error and utility against the length of the learning phase
drawing.py     the look
report.py      report.md and report.html
runner.py      from the points to the files
"""

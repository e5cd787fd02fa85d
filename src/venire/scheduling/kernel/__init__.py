"""What all policies and the engine share: the state of a schedule, and what is done with it.

    desk         the state as flat arrays: rows, touches, queues, labelers, groups
    eligibility  who may still label a row
    queues       the outstanding rows in queues, and a labeler's turn at them
    exits        which rows leave at the end of which slot
    labels       labels that come in, and what those of a row are worth
    verdicts     what is believed of the labelers; the weighted vote of a row, how sure it is
    build        what every policy is given besides its own kernels; limits on labels, confidence

A policy decides by these; Algorithm 1 is `policies/greedy.py`.
"""

"""The paper's Algorithm 1, one step a file.

In the order in which a slot goes:

    greedy           the policy: how rows are ranked, and when each is to leave
    ready_queues     the outstanding rows by rank, in a queue for each group of labelers
    labeler_turn     a labeler takes the best rows, up to the labeler's capacity
    incoming_labels  what the labelers said is entered
    verdicts         the weighted vote of a row, and how sure it is
    exit_wheel       the rows whose time has come leave
    run_slots        all of this for many slots in one compiled call
"""

"""The paper's Algorithm 1, one step a file, in the order in which a slot goes.

Numbers are the lines of Algorithm 1 in the paper; a step without one is not in it.

    greedy           8-11  the policy: labelers in decreasing competence, until nothing gains
    gain            10-13  what one more label of an item gains, which is how items are ranked
    ready_queues     6, 9  the outstanding items by rank, in queues for each group of labelers
    labeler_turn    13-17  a labeler takes the items that gain most, up to the labeler's capacity
    incoming_labels        what the labelers said is entered
    exit_wheel         20  the items leave that nobody can gain from any more
    verdicts               the weighted vote of an item (equation 1), and how sure it is
    build                  what every policy is given besides its own kernels

Who may still label an item (line 7, the set M(s, t)) is in `scheduling.state.eligibility`, the loop
over slots (line 3) in `simulation.run_slots` for a simulation and in `venire.engine` for a stream.
"""

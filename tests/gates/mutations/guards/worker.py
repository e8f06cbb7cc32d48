"""Guards of the worker: steps, takeovers, followers, epochs, what is polled."""

from collections.abc import Sequence

from tests.gates.mutations.mutation import Guard

WORKER: Sequence[Guard] = (
    # So small that only these tests notice.
    Guard(
        "no input is paused between the steps of a chain",
        "worker/stepping.py",
        "and not self._buffer.fill(0.0):",
        "and (self._buffer._poll(0.0) or self._buffer.assigned is not None):",
        "worker/test_stepping.py::test_an_input_that_runs_ahead_is_paused_amid_a_chain",
    ),
    Guard(
        "a first takeover looks at outcomes alone",
        "worker/ledgers.py",
        '    for topic in ("predictions", "outcomes"):',
        '    for topic in ("outcomes",):',
        "worker/test_takeover.py::test_a_group_without_offsets_does_not_begin_over_either_output",
    ),
    # Rebuilding a ledger, with a checkpoint or without.
    Guard(
        "a checkpoint is believed though nothing in the log follows it",
        "worker/ledgers.py",
        "    if frozen is not None and rebuilt.outcomes_end == frozen.ledger.outcomes_end:",
        "    if False:",
        "worker/test_torn_steps.py::test_a_checkpoint_of_a_step_that_a_broker_aborted_is_not_trusted",
    ),
    Guard(
        "a ledger that is ahead of the log is taken from a checkpoint",
        "worker/ledgers.py",
        '        if ledger.outcomes_end <= log.high_watermark("outcomes", p)',
        "        if True",
        "core/ledger/test_rebuild.py::test_a_checkpoints_ledger_that_is_ahead_of_the_log_is_left_and_its_model_taken",
    ),
    # Beginning an epoch.
    Guard(
        "an epoch is begun though another worker was quicker",
        "worker/epochs/epochs.py",
        "        if _begun(log):\n            return ()\n",
        "",
        "worker/test_first_epoch.py::test_a_worker_that_is_overtaken_while_it_looks_is_not_refused",
    ),
    Guard(
        "seeds forget what their epoch inherits",
        "worker/epochs/seeding.py",
        "        if any(own) or found.newest.base is not None:",
        "        if any(own):",
        "commands/test_seed.py::test_a_second_seeding_follows_the_first",
    ),
    Guard(
        "seeds go on from a log that has moved",
        "worker/epochs/seeding.py",
        "        if now != plan.history:",
        "        if False:",
        "commands/test_seed.py::test_seeds_of_an_older_model_are_refused",
    ),
    Guard(
        "an epoch follows one that the plan has not seen",
        "worker/epochs/reset.py",
        "    if newest != follows:",
        "    if False:",
        "commands/test_reset.py::test_an_epoch_that_began_after_the_plan_is_not_followed_blindly",
    ),
    Guard(
        "an epoch goes beyond the updates that exist",
        "worker/epochs/reset.py",
        "        if wanted > most:",
        "        if wanted > most + 1:",
        "commands/test_reset.py::test_an_epoch_may_start_from_all_updates_that_exist_and_from_no_more",
    ),
    Guard(
        "an epoch without positions does not shut out older work",
        "worker/epochs/reset.py",
        "        if session.poll(0.0).generation != generation:",
        "        if False:",
        "commands/test_reset.py::test_before_any_work_a_worker_that_comes_in_between_shuts_the_epoch_out",
    ),
    Guard(
        "inputs that were made anew are taken for the old ones",
        "worker/epochs/input_topics.py",
        "    if then.id != now.id and not (_unknown(then.id) or _unknown(now.id)):",
        "    if False:",
        "worker/test_lost_input.py::test_an_input_that_was_made_anew_is_refused",
    ),
    # Outcomes in parts, and torn steps.
    Guard(
        "a position that somebody set is taken for a torn one",
        "worker/torn_steps.py",
        "    if not found.passed and not ahead:",
        "    if False:",
        "worker/test_takeover.py::test_an_offset_that_was_moved_for_one_input_is_refused",
    ),
    Guard(
        "a position ahead in one input is taken for a torn one",
        "worker/torn_steps.py",
        "committed.examples >= newest.position.examples and committed",
        "committed.examples >= newest.position.examples or committed",
        "worker/test_takeover.py::test_an_offset_that_was_moved_for_one_input_is_refused",
    ),
    Guard(
        "parts of a torn step count as decisions that a gap is missing",
        "worker/missing_predictions.py",
        "        decisions = [*(decisions if part.part else ()), *part.decisions]",
        "        decisions = [*decisions, *part.decisions]",
        "worker/test_missing_predictions.py::test_parts_of_a_torn_step_say_nothing_of_the_step_that_was_made_instead",
    ),
    # Following other workers.
    Guard(
        "a follower passes over a newer epoch",
        "worker/following.py",
        "                if not fold.fold(record.partition, (record,)):",
        "                if fold.fold(record.partition, (record,)) is None:",
        "worker/test_following.py::test_an_epoch_that_others_begin_ends_the_work",
    ),
    Guard(
        "a follower's error is swallowed",
        "worker/following.py",
        "                raise batch\n",
        "                return\n",
        "worker/test_following.py::test_what_ends_the_reading_is_raised_in_the_loop",
    ),
    Guard(
        "a follower that was full never reads on",
        "worker/following.py",
        "            self._taken_bytes += _size(batch)\n",
        "",
        "worker/test_following.py::test_once_the_loop_has_taken_it_more_is_read",
    ),
    # Taking partitions over.
    Guard(
        "a takeover does not ask again after what looks torn",
        "worker/takeover.py",
        "        if _is_doubtful(found, committed) and session.committed(owned) != committed:",
        "        if False:",
        "worker/test_torn_steps.py::test_a_takeover_that_is_overtaken_asks_again",
    ),
    Guard(
        "a takeover refuses for positions that have moved meanwhile",
        "worker/takeover.py",
        "        if committed is not None and session.committed(owned) != committed:",
        "        if False:",
        "worker/test_torn_steps.py::test_a_takeover_that_is_overtaken_while_it_reads_asks_again",
    ),
    Guard(
        "a takeover does not count the labels that its ledgers judged",
        "worker/takeover.py",
        "        fold.model.knows(p, ledgers[p].tallies.epoch.judged)\n",
        "",
        "worker/test_takeover.py::test_a_takeover_knows_every_label_that_was_judged",
    ),
    Guard(
        "a takeover does not compare the tally with the updates",
        "worker/takeover.py",
        "        refuse_other_tally(log, fold.model, p, ledgers[p].tallies.epoch.updates)\n",
        "",
        "worker/test_takeover.py::test_updates_that_others_wrote_are_refused",
    ),
    Guard(
        "a healed position is not searched for missing predictions",
        "worker/takeover.py",
        " or positions[p] != committed[p]:",
        ":",
        "worker/test_torn_steps.py::test_missing_predictions_are_told_and_made_again_when_asked_for",
    ),
    Guard(
        "a label that was lost is read from the wrong place",
        "worker/takeover.py",
        '            gone["labels"].offset + 1 if "labels" in gone else labels,',
        '            gone["labels"].offset if "labels" in gone else labels,',
        "worker/test_lost_input.py::test_unread_input_that_was_deleted_is_refused_until_told_to_skip_it",
    ),
    Guard(
        "what a takeover made is kept though the group had moved on",
        "worker/loop.py",
        "        self._forget()\n        buffer.give_back()",
        "        buffer.give_back()",
        "worker/test_torn_steps.py::test_predictions_that_could_not_be_made_again_for_a_rebalance_are_made_by_the_next_takeover",
    ),
    Guard(
        "a chain goes on when the worker is to stop",
        "worker/stepping.py",
        " or self._stopping(False):\n            return None",
        ":\n            return None",
        "worker/test_stepping.py::test_a_stop_ends_the_chain_with_the_step_that_is_made_already",
    ),
    # What is polled and not taken yet.
    Guard(
        "a worker that owns nothing has worked off everything",
        "worker/input_buffer.py",
        "        return bool(inputs) and len",
        "        return len",
        "worker/test_input_buffer.py::test_everything_is_worked_off_when_both_inputs_are_drained",
    ),
    Guard(
        "lost input is not handed to the steps",
        "worker/input_buffer.py",
        "        self.merge.add(lost)\n",
        "",
        "worker/test_lost_input.py::test_unread_input_that_was_deleted_is_refused_until_told_to_skip_it",
    ),
    Guard(
        "a filling ends only in time or with many records",
        "worker/input_buffer.py",
        "            if full or few or time",
        "            if few or time",
        "worker/test_input_buffer.py::test_filling_ends_with_enough_or_with_little",
    ),
    # Input that was lost.
    Guard(
        "an input that ends below its position is passed",
        "worker/lost_input.py",
        "        if position > end:",
        "        if False:",
        "worker/test_lost_input.py::test_nothing_is_skipped_where_an_input_ends_below_what_was_read",
    ),
    Guard(
        "a gap is one record too long",
        "worker/lost_input.py",
        'oldest - 1, -1, None, None, (), position, "deleted"',
        'oldest, -1, None, None, (), position, "deleted"',
        "worker/test_lost_input.py::test_unread_input_that_was_deleted_is_refused_until_told_to_skip_it",
    ),
    Guard(
        "where nothing is lost a gap is counted",
        "worker/lost_input.py",
        "        if oldest > position:",
        "        if oldest >= position:",
        "worker/test_lost_input.py::test_nothing_is_called_lost_where_nothing_is",
    ),
)

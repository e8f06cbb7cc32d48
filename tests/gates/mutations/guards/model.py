"""Guards of the model: its fold, its window, and what comes back from a checkpoint."""

from collections.abc import Sequence

from tests.gates.mutations.mutation import Guard

MODEL: Sequence[Guard] = (
    # So small that only these tests notice.
    Guard(
        "a checkpoint brings back the newest 1,000 remembered ids",
        "core/checkpoint_content.py",
        "    for entry in frozen.remembered:",
        "    for entry in frozen.remembered[-1000:]:",
        "core/test_checkpoint_content.py::test_thousands_of_entries_come_back_each",
    ),
    # What comes back from a checkpoint.
    Guard(
        "a checkpoint of other outputs is taken",
        "core/checkpoint_content.py",
        "    for topic in TOPICS:",
        "    for topic in TOPICS[:2]:",
        "core/test_checkpoint_content.py::test_a_checkpoint_of_a_topic_made_anew_is_refused",
    ),
    Guard(
        "a checkpoint with another shape of `needed` is taken",
        "core/checkpoint_content.py",
        ", model.updates, model.clock, model.needed)",
        ", model.updates, model.clock)",
        "core/test_checkpoint_content.py::test_a_checkpoint_whose_parts_differ_in_partitions_is_refused",
    ),
    Guard(
        "a checkpoint with a partition that does not exist is taken",
        "core/checkpoint_content.py",
        "    if strangers:",
        "    if False:",
        "core/test_checkpoint_content.py::test_a_checkpoint_with_a_partition_that_the_log_does_not_have_is_refused",
    ),
    Guard(
        "a model comes back without what it needed",
        "core/model/model.py",
        "        self.decided, self.needed = snapshot.decided, list(snapshot.needed)",
        "        self.decided = snapshot.decided",
        "core/test_checkpoint_content.py::test_a_model_comes_back_with_all_that_its_theorem_asks_for",
    ),
    Guard(
        "a model comes back without its radius",
        "core/model/model.py",
        "        self.radius = snapshot.radius\n",
        "",
        "core/test_checkpoint_content.py::test_a_model_comes_back_with_all_that_its_theorem_asks_for",
    ),
    Guard(
        "a fold from a checkpoint does not know what it has inherited",
        "core/model/fold.py",
        "            self._folded |= {(epoch, p): n for p, n in enumerate(versions)}",
        "            self._folded |= {}",
        "core/model/test_fold.py::test_a_fold_from_a_snapshot_does_not_inherit_twice",
    ),
    # The window of updates that count.
    Guard(
        "a window forgets a block too late",
        "core/linear/window.py",
        "        return -(-max(0, self.folded[partition] - self.size) // self.block)",
        "        return max(0, self.folded[partition] - self.size) // self.block",
        "core/linear/test_window.py::test_one_update_too_many_leaves_a_whole_block_out",
    ),
    Guard(
        "a window keeps its oldest block",
        "core/linear/window.py",
        "        for number in [number for number in blocks if number < oldest]:",
        "        for number in [number for number in blocks if number < oldest - 1]:",
        "core/linear/test_window.py::test_nothing_is_subtracted",
    ),
    Guard(
        "a block that comes back is added up last",
        "core/linear/window.py",
        "            self.of[partition] = dict(sorted(self.of[partition].items()))",
        "            pass",
        "core/linear/test_window.py::test_a_block_that_comes_back_is_added_up_in_its_place",
    ),
    Guard(
        "a rolled-back window does not know what was folded",
        "core/linear/window.py",
        "        (self.folded,) = self._journal.take_back()",
        "        self._journal.take_back()",
        "core/linear/test_window.py::test_a_block_that_comes_back_is_added_up_in_its_place",
    ),
    # Following other workers.
    Guard(
        "a follower skips an update that is missing",
        "core/model/model.py",
        "        if update.n != self.updates[partition] + 1:",
        "        if False:",
        "core/model/test_fold.py::test_a_gap_stops",
    ),
    Guard(
        "a follower's clock goes back",
        "core/model/model.py",
        "        raise_to(self.clock, update.clock)",
        "        self.clock = list(update.clock)",
        "core/model/test_fold.py::test_clocks_merge_by_the_larger_entry",
    ),
    Guard(
        "an epoch inherits more than its version",
        "core/model/fold.py",
        "        if known < update.n <= self._inherited[update.epoch][partition]:",
        "        if known < update.n:",
        "core/model/test_fold.py::test_an_epoch_with_a_base_starts_from_that_version",
    ),
    Guard(
        "what an update needed is forgotten with the next one",
        "core/model/model.py",
        "        raise_to(self.needed, update.model.updates)",
        "        self.needed = list(update.model.updates)",
        "core/model/test_fold.py::test_what_an_earlier_update_needed_is_still_needed_after_a_later_one",
    ),
    Guard(
        "an update of another number of partitions is folded",
        "core/model/model.py",
        "        if len(update.clock) != self.partitions or len(update.model.updates) != self.partitions:",
        "        if False:",
        "core/model/test_fold.py::test_an_update_of_another_number_of_partitions_stops",
    ),
    Guard(
        "a model that is rolled back keeps what it had decided",
        "core/model/model.py",
        "        self.updates, self.clock, self.radius, self.decided, self.needed = before",
        "        self.updates, self.clock, self.radius, _, self.needed = before",
        "core/model/test_fold.py::test_a_step_that_is_taken_back_leaves_the_model_as_it_was",
    ),
)

"""Guards of what decides: ledgers, their rebuild, the step, messages."""

from collections.abc import Sequence

from tests.gates.mutations.mutation import Guard

CORE: Sequence[Guard] = (
    # So small that only these tests notice.
    Guard(
        "a rebuild does not compare the offset of the labels",
        "core/ledger/rebuild.py",
        "    return examples == position.examples and labels == position.labels",
        "    return examples == position.examples",
        "core/ledger/test_rebuild.py::test_a_position_that_is_not_that_of_the_newest_outcomes_is_told",
    ),
    Guard(
        "a rebuilt entry's floor of outcomes is one too high",
        "core/ledger/rebuild.py",
        "    outcomes_floor: Shared = recovery_point.outcomes",
        "    outcomes_floor: Shared = recovery_point.outcomes + 1",
        "core/ledger/test_rebuild.py::test_a_rebuilt_ledger_names_a_recovery_point_that_finds_the_same_again",
    ),
    # Rebuilding a ledger, with a checkpoint or without.
    Guard(
        "a rebuild counts decisions of a torn step",
        "core/ledger/rebuild.py",
        "        if part.part == 0:\n            parts.clear()",
        "        if False:\n            parts.clear()",
        "core/ledger/test_rebuild.py::test_parts_of_outcomes_without_a_last_one_count_for_nothing",
    ),
    Guard(
        "a rebuild takes over the tallies of an older epoch",
        "core/ledger/rebuild.py",
        "        if last.model.epoch != present:",
        "        if False:",
        "worker/test_takeover.py::test_a_new_epoch_keeps_ledgers_and_starts_the_model_anew",
    ),
    Guard(
        "a rebuild lets examples below the recovery point wait",
        "core/ledger/rebuild.py",
        "        if source >= recovery_point.source and source not in resolved:",
        "        if source not in resolved:",
        "core/ledger/test_rebuild.py::test_predictions_below_the_recovery_points_source_are_of_examples_that_are_resolved",
    ),
    Guard(
        "a rebuild goes on without any outcomes",
        "core/ledger/rebuild.py",
        "    elif not decided.passed:",
        "    elif False:",
        "core/ledger/test_rebuild.py::test_a_position_without_any_outcomes_is_told",
    ),
    Guard(
        "a rebuilt entry's floor of predictions is one too high",
        "core/ledger/rebuild.py",
        "                floor, floor_at = record.offset, message.at",
        "                floor, floor_at = record.offset + 1, message.at",
        "core/ledger/test_rebuild.py::test_a_rebuilt_ledger_names_a_recovery_point_that_finds_the_same_again",
    ),
    Guard(
        "a checkpoint's examples wait on though they are resolved",
        "core/ledger/rebuild.py",
        " for entry in ledger.waiting.values() if entry.source not in resolved}",
        " for entry in ledger.waiting.values()}",
        "core/ledger/test_rebuild.py::test_a_checkpoints_ledger_is_brought_to_where_the_log_is",
    ),
    Guard(
        "a rebuild forgets labels that a checkpoint holds parked",
        "core/ledger/rebuild.py",
        "    parked = {entry.offset: entry for entry in ledger.parked.values()}",
        "    parked: dict[int, Parked] = {}",
        "core/ledger/test_rebuild.py::test_a_checkpoints_ledger_is_brought_to_where_the_log_is",
    ),
    Guard(
        "an epoch goes on from a checkpoint with the memory of the newest",
        "core/ledger/rebuild.py",
        "if epoch >= made_in]",
        "if epoch > made_in]",
        "core/ledger/test_rebuild.py::test_a_checkpoints_epoch_goes_on_with_its_own_memory_until_the_next_begins",
    ),
    Guard(
        "what was overdue before a rollback is not looked after again",
        "core/ledger/ledger.py",
        "            entries.rollback()\n        self._count_classes()\n        self.next_deadline = -1.0",
        "            entries.rollback()\n        self._count_classes()",
        "core/step/test_step.py::test_what_a_step_gave_up_is_given_up_again_once_it_was_taken_back",
    ),
    # Outcomes in parts, and torn steps.
    Guard(
        "parts of outcomes are not numbered",
        "core/step/outcome_records.py",
        "Outcomes(part=number, model=model",
        "Outcomes(part=0, model=model",
        "core/step/test_outcome_records.py::test_every_record_fits_whatever_the_topic_takes",
    ),
    Guard(
        "a part of outcomes has no room for its commas",
        "core/step/outcome_records.py",
        "        size = len(encode(decision)) + 1",
        "        size = len(encode(decision))",
        "core/step/test_outcome_records.py::test_every_record_fits_whatever_the_topic_takes",
    ),
    Guard(
        "the summary of outcomes may exceed the topic",
        "core/step/outcome_records.py",
        "    if record_bytes(None, last(first + len(parts) - 1, parts[-1]), ()) > largest:",
        "    if False:",
        "core/step/test_outcome_records.py::test_every_record_fits_whatever_the_topic_takes",
    ),
    Guard(
        "a step does not write the schemas that it read by",
        "core/step/schemas.py",
        "        self.new[schema_id] = found",
        "        pass",
        "worker/registry/test_schemas_in_outcomes.py::test_a_stream_in_avro_comes_to_what_it_comes_to_in_json",
    ),
    Guard(
        "a ledger that is rolled back forgets which schemas are written",
        "core/ledger/ledger.py",
        "                self.labels_next,\n                self.schemas,",
        "                self.labels_next,\n                {},",
        "worker/registry/test_schemas_in_outcomes.py::test_steps_that_are_made_again_write_their_schemas_again_and_only_those",
    ),
    Guard(
        "a label that waited for a torn step's example waits on",
        "core/step/torn_step.py",
        "        if record_id in ledger.parked:",
        "        if False:",
        "worker/test_torn_steps.py::test_a_label_that_waited_for_an_example_of_a_torn_step_is_applied",
    ),
    Guard(
        "an example of a torn step is predicted twice",
        "core/step/step.py",
        "if ledger.examples_next < ledger.published_end else PartitionStep",
        "if False else PartitionStep",
        "worker/test_torn_steps.py::test_what_loses_nothing_is_healed",
    ),
    # What must fit into a topic.
    Guard(
        "headers are not counted",
        "core/step/sizes.py",
        "        if not record.headers and len(features)",
        "        if len(features)",
        "core/step/test_sizes.py::test_what_is_just_taken_fits",
    ),
    Guard(
        "an update is not sized",
        "core/step/sizes.py",
        "        self._surely_fits = min(limits.predictions, limits.updates) - self._fixed",
        "        self._surely_fits = limits.predictions - self._fixed",
        "core/step/test_sizes.py::test_each_output_topic_has_its_own_limit",
    ),
    Guard(
        "an id of control characters is sized as plain text",
        "core/step/sizes.py",
        "        self._beside = 6 * ID_BYTES +",
        "        self._beside = ID_BYTES +",
        "core/step/test_sizes.py::test_what_is_just_taken_fits",
    ),
    Guard(
        "a label's own content is not sized for outcomes",
        "core/step/sizes.py",
        '        _check("the label\'s own content", size, "outcomes", self._limits.outcomes, less)\n',
        "",
        "core/step/test_late_labels.py::test_content_that_leads_to_records_too_large_is_a_dead_letter",
    ),
    # What is polled and not taken yet.
    Guard(
        "of equal times the label comes first",
        "core/step/merge.py",
        "            first = examples if examples[0].timestamp_ms <= labels[0].timestamp_ms else labels\n",
        "            first = examples if examples[0].timestamp_ms < labels[0].timestamp_ms else labels\n",
        "core/step/test_merge.py::test_at_equal_times_the_example_comes_first",
    ),
    Guard(
        "a record that has to wait goes to the end",
        "core/step/merge.py",
        '== "labels"].appendleft(record)',
        '== "labels"].append(record)',
        "core/step/test_merge.py::test_a_record_put_back_is_the_next_one_again",
    ),
    # What others write.
    Guard(
        "a truth value is an id",
        "core/messages/inputs.py",
        "    elif type(found) is int:",
        "    elif isinstance(found, int):",
        "core/messages/test_inputs.py::test_pointed_messages_are_refused_with_the_same_reasons",
    ),
    Guard(
        "an id of 129 bytes is taken",
        "core/messages/inputs.py",
        "    if size > ID_BYTES:",
        "    if size > ID_BYTES + 1:",
        "core/messages/test_inputs.py::test_an_id_takes_at_most_128_bytes",
    ),
    Guard(
        "a label carries features without a prediction",
        "core/messages/inputs.py",
        "        if features is UNSET or prediction is UNSET:",
        "        if features is UNSET:",
        "core/step/test_late_labels.py::test_half_a_content_is_none",
    ),
    Guard(
        "header names that are not UTF-8 are taken",
        "core/messages/inputs.py",
        "    if headers[0][0] != NAME_NOT_UTF8:",
        "    if True:",
        "core/messages/test_inputs.py::test_a_record_with_header_names_that_are_not_utf8_is_refused",
    ),
    Guard(
        "an update on a feature named format is an epoch",
        "core/messages/schema.py",
        "    if b'\"format\":' in value[:64]:",
        "    if b'\"format\":' in value:",
        "core/messages/test_schema.py::test_an_update_on_a_feature_named_format_is_no_epoch",
    ),
)

"""Guards of what predictions say beside their class: labels asked for, and probabilities."""

from collections.abc import Sequence

from tests.gates.mutations.mutation import Guard

BESIDE: Sequence[Guard] = (
    Guard(
        "a label that was not asked for is learned from",
        "core/step/labels.py",
        "(entry.beside is None or entry.beside.weight != 0)",
        "(entry.beside is None or entry.beside.weight != -1)",
        "core/step/test_asking.py::test_only_labels_asked_for_are_learned_from",
    ),
    Guard(
        "a label applied late is learned from though labels are asked for",
        "core/step/labels.py",
        "asked = not late and (entry",
        "asked = (entry",
        "core/step/test_asking.py::test_a_label_applied_late_is_judged_and_not_learned_from",
    ),
    Guard(
        "the side of a score decides what is asked for",
        "core/step/asking.py",
        "abs(score).as_integer_ratio()",
        "max(0.0, score).as_integer_ratio()",
        "core/step/test_asking.py::test_the_rule_is_the_documented_hash_against_b_over_b_plus_the_scores_size",
    ),
    Guard(
        "a probability is forgotten where no labels are asked for",
        "core/messages/beside.py",
        "        if ask is UNSET and probability is UNSET:",
        "        if ask is UNSET:",
        "core/step/test_probabilities.py::test_a_label_counts_where_its_prediction_was",
    ),
    Guard(
        "a larger margin may be less probable",
        "core/step/probabilities.py",
        "        while pools and pools[-1].positive",
        "        while len(pools) > BUCKETS and pools[-1].positive",
        "core/step/test_probabilities.py::test_probabilities_are_isotonic_regression_of_the_buckets_shares",
    ),
    Guard(
        "a probability made before a label is used after it",
        "core/step/probabilities.py",
        "positive=label == self._positive)\n        self._made = None",
        "positive=label == self._positive)",
        "core/step/test_probabilities.py::test_a_label_between_two_examples_of_a_step_counts_for_the_second",
    ),
    Guard(
        "an older epoch's prediction counts in the present one's table",
        "core/step/probabilities.py",
        "[: 1 + of_epoch]",
        "[:2]",
        "core/step/test_probabilities.py::test_a_label_of_an_older_epochs_prediction_counts_for_life_alone",
    ),
    Guard(
        "a probability is of the labels of all epochs",
        "core/step/probabilities.py",
        "            table = self._tallies.epoch.reliability",
        "            table = self._tallies.life.reliability",
        "core/step/test_probabilities.py::test_a_label_of_an_older_epochs_prediction_counts_for_life_alone",
    ),
)

"""What `replay` and `seed` read: a recording, or labelled data."""

from collections.abc import Callable, Iterable

from mistakebound.commands.input_files import Form, InputFile, choose_form
from mistakebound.commands.labelled_files.columns import Columns
from mistakebound.commands.labelled_files.labelled_file import LabelledFile
from mistakebound.commands.recordings import RecordingFile
from mistakebound.core.replay.applied import AppliedRows
from mistakebound.core.replay.replay import Row, replay_records
from mistakebound.core.step.step import Step
from mistakebound.settings import LearnerSettings, Settings

Data = RecordingFile | LabelledFile


def read_as(file: InputFile, form: Form | None, columns: Columns, settings: Settings) -> Data:
    """The file in the form that was asked for, else the one that content or name tells. Raises CommandError."""
    found = choose_form(file, form)
    if found == "recording":
        columns.must_fit(found)
        return RecordingFile(file, settings)
    return LabelledFile(file, found, settings.labels, columns)


def labelled_rows(data: Data, settings: Settings, taken: Callable[[Step], None]) -> Iterable[Row]:
    """Labelled data's rows, or the examples of a recording in the order in which their labels were applied.

    `taken` is shown every step of a recording.
    """
    if not isinstance(data, RecordingFile):
        return data
    header, records = data.begin()
    rows = AppliedRows()

    def see(step: Step) -> None:
        rows.see(step)
        taken(step)

    # A perceptron stands in for the learner: which labels are applied does not depend on it.
    plain = settings.model_copy(update={"learner": LearnerSettings(kind="perceptron")})
    replay_records(records, plain, header.partitions, taken=see)
    return rows.rows

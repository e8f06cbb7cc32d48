"""What `replay` and `seed` read: a recording, or labelled data."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from mistakebound.commands.errors import CommandError
from mistakebound.commands.input_files import Form, InputFile, choose_form
from mistakebound.commands.labelled_files.columns import Columns
from mistakebound.commands.labelled_files.labelled_file import LabelledFile
from mistakebound.commands.recordings import RecordingFile
from mistakebound.core.messages.inputs import pointer_keys
from mistakebound.core.replay.applied import AppliedRows
from mistakebound.core.replay.plan import carry_out, planned
from mistakebound.core.replay.recorded import Recorded
from mistakebound.core.replay.replay import Row, tenants_own_place
from mistakebound.core.step.step import Step
from mistakebound.settings import FeatureSettings, LearnerSettings, Settings

Data = RecordingFile | LabelledFile


def read_as(file: InputFile, form: Form | None, columns: Columns, settings: Settings) -> Data:
    """The file in the form that was asked for, else the one that content or name tells. Raises CommandError."""
    found = choose_form(file, form)
    if found == "recording":
        columns.must_fit(found)
        return RecordingFile(file, settings)
    columns.must_fit(found)
    return LabelledFile(file, found, settings.labels, _with_tenants(columns, found, settings))


def labelled_rows(data: Data, settings: Settings, taken: Callable[[Step], None]) -> Iterable[Row]:
    """Labelled data's rows, or the examples of a recording in the order in which their labels were applied.

    `taken` is shown every step of a recording.
    """
    if not isinstance(data, RecordingFile):
        return data
    header, records = data.begin()
    recorded, rows = Recorded(records, header.partitions), AppliedRows()

    def see(step: Step) -> None:
        rows.see(step)
        taken(step)

    # Which labels are applied depends on neither; afresh, a perceptron stands in for the learner.
    plan = planned(
        recorded, settings.model_copy(update={"learner": LearnerSettings(), "features": FeatureSettings()})
    )
    if plan.afresh is not None:
        plain = settings.model_copy(update={"learner": LearnerSettings(kind="perceptron")})
        plan = replace(plan, settings=plain)
    carry_out(recorded, plan, taken=see)
    return rows.rows


def _with_tenants(columns: Columns, form: Form, settings: Settings) -> Columns:
    """The columns, with the tenant's where `features.cross` asks for one. Raises CommandError."""
    place = tenants_own_place(settings)
    if place is None:
        if columns.tenant is None:
            return columns
        where = "unset" if settings.features.cross is None else "one of the features"
        raise CommandError(f"--tenant: features.cross is {where}, so no column is the tenant; leave it out")
    if form == "svmlight":
        raise CommandError("features.cross: an svmlight line names no tenant; write CSV or JSON Lines")
    return columns if columns.tenant is not None else replace(columns, tenant=pointer_keys(place)[-1])

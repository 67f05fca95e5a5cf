"""What each code of an error means, and its cure; config/cautions.py has those of warnings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gradcli.errors import DeviceError, GradcliError, NumericsError


class Code(NamedTuple):
    """What an error says, and the cure."""

    meaning: str
    cure: str
    error: type[GradcliError] | None = None  # where it is not that of the code's hundred


CODES: dict[str, Code] = {
    "E000": Code("Nobody foresaw this: a bug in gradcli", "Run it with --debug and report both."),
    "E100": Code("The command line is wrong", "Read the command's --help; it lists the options."),
    "E101": Code("A file, an override or an argument cannot be used", "Read what it names."),
    "E102": Code("A name is in no table", "Take the offered one; `gradcli explain` knows all."),
    "E103": Code("A key does not belong there", "Take the offered one, or move it where it says."),
    "E104": Code("A key has a wrong value, or is missing", "Write what the message expects."),
    "E105": Code("The text is not YAML, or too large", "Look at the place; indent by spaces."),
    "E106": Code("Something stands there twice, or is an alias", "Write each thing once."),
    "E107": Code("A reference such as $data.classes names nothing", "Name a value that is there."),
    "E108": Code("An override (-s) is wrong", "Write -s KEY=VALUE with a key of the config."),
    "E109": Code("Parts of the config do not fit each other", "Change one of the two it names."),
    "E122": Code("An epoch has no step, or the run too few", "Make train.batch smaller."),
    "E123": Code("A run cannot have this name", "Use letters, digits, '.', '_' and '-'."),
    "E124": Code(
        "A figure names a metric that the run lacks", "Add it to metrics, or name another."
    ),
    "E125": Code("A resumed run cannot change this value", "Begin a new run: train --from RUN."),
    "E126": Code("A part of the model is not translated to PyTorch", "Leave out --compare torch."),
    "E127": Code("An earlier measurement cannot be compared", "Measure anew with bench --json."),
    "E128": Code("Own code that no training of yours ran", "Read it, then say --trust-code."),
    "E130": Code("Ctrl-C: the run stopped behind a checkpoint", "Go on with gradcli resume RUN."),
    "E131": Code("The unfinished run has another config", "Resume that run, or begin a new one."),
    "E201": Code(
        "Shapes do not fit together", "Compare the two shapes; `check` shows all layers'."
    ),
    "E202": Code("An op does not take this element type", "Convert the tensor, as with .float()."),
    "E203": Code("An index lies outside its dimension", "Count from 0 to the size less 1."),
    "E204": Code("An argument has an impossible value", "Write what the message expects."),
    "E205": Code("A gradient cannot be computed", "Keep the graph, and what it saved, unchanged."),
    "E206": Code("A step cannot be recorded: Python decides by values", "Write capture: false."),
    "E301": Code("Data is missing or cannot be read", "Put it there, or change the path in data."),
    "E302": Code("A data file is damaged or of another kind", "Fetch it again, or convert it."),
    "E303": Code(
        "A data file is not the one that SHA256SUMS lists", "Restore it, or renew the line."
    ),
    "E304": Code("A table or text has a mistake", "Look at the row and column that it names."),
    "E305": Code("The data does not fit what the config asks of it", "Change the data or the key."),
    "E311": Code("A worker of a DataLoader failed", "Read its error; try num_workers=0."),
    "E312": Code(
        "A data file changed while it was in use", "Restore the file, then resume the run."
    ),
    "E401": Code("A device, kernel or compiler is not there", "Use --device cpu; see doctor."),
    "E402": Code("There is not enough memory", "Make train.batch smaller, or set micro_batch."),
    "E501": Code("NaN or infinity where numbers are needed", "Lower optim.lr, or set train.clip."),
    "E601": Code("A figure in expect was missed", "Train longer, or correct the figure."),
    "E602": Code(
        "A stopped and resumed run is not the whole run", "Please report it: it is a bug."
    ),
    "E701": Code("A checkpoint is damaged", "Use an older one: --checkpoint STEP."),
    "E702": Code(
        "A folder is no run, or another process has it", "Name a run; wait for the other."
    ),
    "E703": Code("The disk is full or cannot be written", "Make room, or set train.keep lower."),
    "E704": Code("A checkpoint does not fit the model", "Use the run's own config, or --partial."),
    "E705": Code("A checkpoint is of another training", "Resume the run that it belongs to."),
    "E706": Code("The data changed since the run began", "Restore it, or begin a new run."),
    "E707": Code(
        "pretrained.from names no file, folder of a published model or run", "Correct the name."
    ),
    "E708": Code(
        "Prepared data cannot be written",
        "Make room: gradcli data clean, or set data.cache to another folder.",
    ),
    "E751": Code("SIGTERM: the run stopped behind a checkpoint", "Go on with gradcli resume RUN."),
    "E801": Code("Several processes were started, and MPI sees one", "Install mpi4py of this MPI."),
    "E802": Code("A batch has fewer parts than there are ranks", "Start fewer, or a larger batch."),
    "E803": Code(
        "Ranks have too few GPUs, or of different kinds", "Start one rank a GPU.", DeviceError
    ),
    "E804": Code(
        "Ranks differ in version, config or data", "Install and copy the same everywhere."
    ),
    "E805": Code(
        "Weights differ between ranks", "Resume from the checkpoint before.", NumericsError
    ),
    "E806": Code("A rank did not come", "Look at its own message, then resume the run."),
    "E807": Code("This command is to be started once", "Leave mpirun or srun out."),
}


def exit_code(code: str) -> int:
    """What a command returns after an error of this code: that of its class or of its hundred."""
    error = CODES[code].error
    if error is not None:
        return error.exit_code
    codes = {error.code: error.exit_code for error in _classes(GradcliError)}
    return codes[code if code in codes else code[:2] + "01"]


def _classes(error: type[GradcliError]) -> Iterator[type[GradcliError]]:
    yield error
    for narrower in error.__subclasses__():
        yield from _classes(narrower)


def table() -> Iterator[str]:
    """The rows of docs/errors.md."""
    yield from ("| Code | Exit code | Cause | Cure |", "|---|---|---|---|")
    for name, code in CODES.items():
        yield f"| {name} | {exit_code(name)} | {code.meaning} | {code.cure} |"

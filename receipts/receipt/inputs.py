"""Section ``inputs``: what a launch was started with, as the process and its files say it."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from receipts.receipt.leaf import Count, Digest, Name, Section, Text, given, note
from receipts.receipt.maps import Key, Scalar

InputMap = Annotated[dict[Key, Scalar], Field(max_length=4000)]


class InputFile(Section):
    """A file or folder that an option, or the program, names."""

    option: Name | None = note("The option that names it, without its dashes; `#0` for a word of the command line.")
    name: Name = given("Its name, relative to the checkout where it lies in one.", required=True)
    kind: Literal["config", "data", "folder", "output"] | None = note(
        "How it is read: settings, data, a folder's listing; `output` for a place that the run itself made."
    )
    sha256: Digest | None = given("SHA-256 of its bytes; of a folder, of the sorted names and sizes.")
    bytes: Count | None = note("Its size.", unit="bytes")
    flat: InputMap | None = given("Its settings by dotted keys, where it was read as a configuration.")


def _map(description: str) -> Any:
    declared: dict[str, Any] = {"role": "input", "open": True, "since": "1.1"}
    return Field(default=None, description=description, json_schema_extra={"receipts": declared})


class Inputs(Section):
    """What the launch was started with. Two launches of one program with equal inputs are one configuration."""

    program: Name | None = given("The program: a script relative to its checkout, `-m module`, or a command's name.")
    options: InputMap | None = _map("Options of the program, by key without dashes: what the command line gave.")
    defaults: InputMap | None = _map(
        "Defaults that the program's source declares, by key: of options, and of variables as `env.NAME`."
    )
    files: Annotated[tuple[InputFile, ...], Field(max_length=64)] | None = Field(
        default=None, description="Configuration files, data files and folders that the options name."
    )
    environment: InputMap | None = _map("Environment variables that the program reads, by name.")
    launcher: InputMap | None = _map("Options of the launchers before the program, by launcher and key.")
    resolved: InputMap | None = _map("Settings as the program or its framework resolved them, by dotted key.")
    capture: Annotated[Text, StringConstraints(min_length=1)] | None = note(
        "`whole` if all of the above was captured, otherwise the reasons why not."
    )

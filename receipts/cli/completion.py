"""``receipts completion``: the script that a shell needs to complete commands and options."""

from __future__ import annotations

import click

from receipts.cli.session import Answer, Session, verb


@verb("completion", json=False)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(session: Session, shell: str) -> Answer:
    """Print shell completion for bash, zsh or fish.

    Examples:
      receipts completion bash >> ~/.bashrc
      receipts completion fish > ~/.config/fish/completions/receipts.fish
    """
    from click.shell_completion import get_completion_class

    from receipts.cli.group import group

    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.UsageError(f"there is no completion for {shell}")
    return Answer(None, completion_class(group, {}, "receipts", "_RECEIPTS_COMPLETE").source())

"""`dittofl`: exit code 0, or 2 for a mistake of the user's, 1 for the machine's, 130 where the user stopped it."""

import errno
import logging
import os
import sys
from collections.abc import Sequence

import click

from dittofl.cli.commands import commands
from dittofl.errors import InputError, StoppedError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dittofl")
def cli() -> None:
    """Personalised, fair and robust federated learning around Ditto.

    \b
    dittofl list                     what there is: methods, attacks, defences, data sets, presets
    dittofl data list                data sets, where they lie, how they are dealt out to devices
    dittofl run digits-a1            trains a preset, or a spec of your own, into a folder of its own
    dittofl report runs              a table and one page over all runs below a folder
    dittofl new DIR                  a small working example with your own model and data
    """


for command in commands:
    cli.add_command(command)


def main() -> None:
    """The console script."""
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    sys.exit(answer(sys.argv[1:]))


def answer(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code.

    >>> answer(["--version"])  # doctest: +ELLIPSIS
    dittofl, version ...
    0
    """
    try:
        code = cli.main(list(arguments), prog_name="dittofl", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.UsageError as error:
        return _said(f"{error.format_message()} (see {_help(error)})", 2)
    except click.ClickException as error:
        return _said(error.format_message(), 2)
    except InputError as error:
        return _said(str(error), 2)
    except StoppedError as error:
        return _said(str(error), 130)
    except (KeyboardInterrupt, click.Abort):
        return _said("stopped at once; what was saved last is whole: go on with --resume", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains at its end
        return 0
    except MemoryError:
        return _said("the memory is full: make the cohort, the batch or Vmap(chunk=…) smaller", 1)
    except RuntimeError as error:
        if "out of memory" not in str(error) and "allocate memory" not in str(error):  # as torch says it
            raise
        return _said("the memory is full: make the cohort, the batch or Vmap(chunk=…) smaller", 1)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return _said("the disk is full: free some space and go on with --resume" if full else str(error), 1)


def _said(sentence: str, code: int) -> int:
    click.echo(f"dittofl: {' '.join(sentence.split())}", err=True)
    return code


def _help(error: click.UsageError) -> str:
    return f"{error.ctx.command_path} --help" if error.ctx is not None else "dittofl --help"

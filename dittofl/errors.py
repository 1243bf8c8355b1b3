"""The one exception a user's mistake raises: what we got, what was expected, what to do."""


class InputError(ValueError):
    """A mistake in data, module or parameters, told in one sentence that names the culprit."""


def require(condition: object, sentence: str) -> None:
    """Raise InputError(sentence) unless the condition holds.

    >>> require(2 + 2 == 4, "never said")
    """
    if not condition:
        raise InputError(sentence)

"""The error that a user's mistake raises, whatever room it happens in."""


class AttnlabError(ValueError):
    """Something was asked that cannot be done; the message says what was got, what was expected,
    what to do.

    The command line prints the message without a traceback and exits with code 2.
    """


class MissingData(AttnlabError):
    """Data that is not on this computer: what needs it is *not run*, which is no failure."""

"""Errors by which a handler chooses what happens to a delivery."""


class Retryable(Exception):
    """This delivery cannot be handled yet; redeliver it after the consumer's delay."""


class ServedElsewhere(Retryable):
    """The delivery is for another replica: redeliver it soon."""


class Rejected(Exception):
    """This message can never be handled; dead-letter it with this reason."""

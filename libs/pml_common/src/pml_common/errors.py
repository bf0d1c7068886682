"""What a handler can say of a delivery that it could not handle."""


class Retryable(Exception):
    """This delivery cannot be handled yet; deliver it again after the consumer's delay."""


class Rejected(Exception):
    """This message can never be handled; bury it with this reason, let its neighbours flow."""

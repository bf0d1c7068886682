"""Settings of a service at its start: those that cannot be used end it with a line for people."""

import logging
from typing import TypeVar

from pydantic import ValidationError
from pydantic_settings import BaseSettings

from pml_common.contracts.catalog import Service
from pml_common.contracts.fault_words import field_of, words_of
from pml_common.telemetry.logs import set_up_logging

log = logging.getLogger(__name__)

S = TypeVar("S", bound=BaseSettings)


def read_settings(name: Service, kind: type[S]) -> S:
    """Read the settings. Exits non-zero where some cannot be used, with a log line that names
    each."""
    try:
        return kind()
    except ValidationError as error:
        faults = [
            ": ".join(filter(None, (_variable(kind, field_of(fault["loc"])), words_of({**fault}))))
            for fault in error.errors(include_url=False, include_input=False)
        ]
    except ValueError as error:  # a value that is no JSON, or no folder of secrets
        faults = [str(error)]
    set_up_logging(name, "INFO", "text")
    log.critical("cannot start: %s", "; ".join(faults))
    raise SystemExit(1)


def _variable(kind: type[BaseSettings], field: str) -> str:
    """Return the variable of a field: its own name with the prefix, or that of its alias."""
    prefix = kind.model_config.get("env_prefix", "")
    return f"{prefix}{field.upper()}" if field in kind.model_fields else field

"""Settings of the analyzer from its environment."""

from typing import Literal

from deno import find_deno_bin
from pydantic import Field

from pml_common.service import ServiceSettings


class AnalyzerSettings(ServiceSettings):
    """`analyzer_source_limit` is in bytes of UTF-8, `analyzer_catalog_max_age_s` bounds how long a
    change of tools or capabilities whose event was missed can go unnoticed.

    Long programs are analysed, and all programs compiled, in processes of their own: at most
    `analyzer_processes` of each kind, of which one scope may use `analyzer_processes_per_scope` at
    a time, for `analyzer_deadline_s` seconds of processor time.

    `analyzer_spares` processes of each kind are started ahead of the first program, and the type
    checker with them; with 0 the first program waits for them.

    A separate process checks types: with `analyzer_type_check` = `warn` errors are warnings of the
    analysis, with `reject` they refuse the program, with `off` there is no such process.
    """

    analyzer_source_limit: int = Field(default=256 * 1024, gt=0)
    analyzer_catalog_max_age_s: float = Field(default=30.0, ge=0)
    analyzer_deadline_s: float = Field(default=2.0, gt=0)
    analyzer_processes: int = Field(default=2, ge=1)
    analyzer_processes_per_scope: int = Field(default=1, ge=1)
    analyzer_spares: int = Field(default=1, ge=0, le=1)
    analyzer_type_check: Literal["off", "warn", "reject"] = "warn"
    analyzer_type_check_timeout_s: float = Field(default=2.0, gt=0)
    analyzer_type_check_heap_mib: int = Field(default=512, ge=128)
    analyzer_deno: str = Field(default_factory=find_deno_bin, description="path of the Deno binary")

"""What the analyzer is told by its environment."""

from pydantic import Field

from pml_common.service import ServiceSettings


class AnalyzerSettings(ServiceSettings):
    """`analyzer_source_limit` is in bytes of UTF-8, `analyzer_catalog_max_age_s` bounds how long
    a change of tools or capabilities that nobody told of can go unseen."""

    analyzer_source_limit: int = Field(default=256 * 1024, gt=0)
    analyzer_catalog_max_age_s: float = Field(default=30.0, ge=0)

"""Entry point of the executor service."""

from pml_common.service import run_service
from pml_common.settings_at_start import read_settings
from pml_executor.app import serve
from pml_executor.settings import ExecutorSettings

if __name__ == "__main__":
    run_service("executor", read_settings("executor", ExecutorSettings), serve)

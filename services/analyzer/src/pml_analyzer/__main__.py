"""Start the analyzer."""

from pml_analyzer.app import serve
from pml_analyzer.settings import AnalyzerSettings
from pml_common.service import run_service
from pml_common.settings_at_start import read_settings

if __name__ == "__main__":
    run_service("analyzer", read_settings("analyzer", AnalyzerSettings), serve)

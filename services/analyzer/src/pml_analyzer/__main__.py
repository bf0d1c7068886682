"""Start the analyzer."""

from pml_analyzer.app import serve
from pml_analyzer.settings import AnalyzerSettings
from pml_common.service import run_service

if __name__ == "__main__":
    run_service("analyzer", AnalyzerSettings(), serve)

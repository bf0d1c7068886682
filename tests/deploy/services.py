"""Each service's settings, by the name of the service."""

from collections.abc import Mapping

from pml_analyzer.settings import AnalyzerSettings
from pml_common.contracts.catalog import Service
from pml_common.service import ServiceSettings
from pml_executor.settings import ExecutorSettings
from pml_gateway.settings import GatewaySettings
from pml_learner.settings import LearnerSettings
from pml_registry.settings import RegistrySettings

SETTINGS: Mapping[Service, type[ServiceSettings]] = {
    "gateway": GatewaySettings,
    "analyzer": AnalyzerSettings,
    "executor": ExecutorSettings,
    "learner": LearnerSettings,
    "registry": RegistrySettings,
}

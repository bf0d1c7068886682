"""Names of our own span attributes; messaging ones follow OpenTelemetry's conventions."""

WORKFLOW_ID = "pml.workflow.id"
SCOPE = "pml.scope"
CAPABILITY_ID = "pml.capability.id"
NODE_ID = "pml.node.id"
TOOL = "pml.tool.id"
OUTCOME = "pml.outcome"
CACHE = "pml.cache.outcome"

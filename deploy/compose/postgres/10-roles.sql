-- A role for each service, which owns its schema and sees no other, and the registry's three that own
-- nothing (docs/registry.md, tenancy): the statements of k8s/components/postgres/cluster.yaml, which
-- tests/deploy compares.
CREATE EXTENSION IF NOT EXISTS vector;
CREATE ROLE gateway;
CREATE ROLE learner;
CREATE ROLE registry;
CREATE SCHEMA gateway AUTHORIZATION gateway;
CREATE SCHEMA learner AUTHORIZATION learner;
CREATE SCHEMA registry AUTHORIZATION registry;
GRANT CREATE ON DATABASE pml TO gateway, learner, registry;
CREATE ROLE registry_registry_app;
CREATE ROLE registry_registry_reach;
CREATE ROLE registry_registry_batch;
GRANT registry_registry_app, registry_registry_reach, registry_registry_batch TO registry WITH INHERIT FALSE, SET TRUE;

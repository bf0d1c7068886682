-- An owner for each schema, who applies its migrations and sees no other, a login for its service, and
-- three roles that the login may take on; none of the four owns anything (docs/decisions/0023). The
-- statements of k8s/components/postgres/cluster.yaml, which tests/deploy compares.
CREATE EXTENSION IF NOT EXISTS vector;
CREATE ROLE gateway;
CREATE ROLE learner;
CREATE ROLE registry;
CREATE SCHEMA gateway AUTHORIZATION gateway;
CREATE SCHEMA learner AUTHORIZATION learner;
CREATE SCHEMA registry AUTHORIZATION registry;
GRANT CREATE ON DATABASE pml TO gateway, learner, registry;
CREATE ROLE gateway_gateway_app;
CREATE ROLE gateway_gateway_reach;
CREATE ROLE gateway_gateway_batch;
CREATE ROLE gateway_gateway_login;
GRANT gateway_gateway_app, gateway_gateway_reach, gateway_gateway_batch TO gateway_gateway_login WITH INHERIT FALSE, SET TRUE;
CREATE ROLE learner_learner_app;
CREATE ROLE learner_learner_reach;
CREATE ROLE learner_learner_batch;
CREATE ROLE learner_learner_login;
GRANT learner_learner_app, learner_learner_reach, learner_learner_batch TO learner_learner_login WITH INHERIT FALSE, SET TRUE;
CREATE ROLE registry_registry_app;
CREATE ROLE registry_registry_reach;
CREATE ROLE registry_registry_batch;
CREATE ROLE registry_registry_login;
GRANT registry_registry_app, registry_registry_reach, registry_registry_batch TO registry_registry_login WITH INHERIT FALSE, SET TRUE;

-- Edges that runs show, in three tables: between capabilities, between tools, and between both. A
-- message counts once: its rows in the inbox and its edges are one transaction.

-- name: unknown-capabilities
-- Messages that name a capability which does not exist.
SELECT DISTINCT message_id
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[])
    AS named (message_id, org, project, pattern_id)
WHERE NOT EXISTS (
    SELECT FROM workflow_pattern
    WHERE workflow_pattern.org = named.org AND workflow_pattern.project = named.project
        AND workflow_pattern.pattern_id = named.pattern_id
)

-- name: claim-edges
INSERT INTO inbox (message_id, consumer, org, project)
SELECT message_id, consumer, org, project
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[])
    AS claimed (message_id, consumer, org, project)
ORDER BY message_id, consumer
ON CONFLICT DO NOTHING
RETURNING message_id, consumer

-- name: meet-capability-edges
INSERT INTO capability_dependency (
    org, project, from_capability_id, to_capability_id, edge_type, edge_source,
    observed_count, confidence_score
)
SELECT org, project, from_id, to_id, edge_type, 'inferred', 0, 0
FROM unnest($1::text[], $2::text[], $3::text[]::uuid[], $4::text[]::uuid[], $5::text[])
    AS met (org, project, from_id, to_id, edge_type)
ORDER BY org, project, from_id, to_id, edge_type
ON CONFLICT DO NOTHING
RETURNING
    org, project, from_capability_id::text AS from_id, to_capability_id::text AS to_id, edge_type

-- name: lock-capability-edges
SELECT
    org, project, from_capability_id::text AS from_id, to_capability_id::text AS to_id, edge_type,
    edge_source, observed_count, last_observed, shares, base_source, base_confidence
FROM capability_dependency
JOIN unnest($1::text[], $2::text[], $3::text[]::uuid[], $4::text[]::uuid[], $5::text[])
    AS asked (org, project, from_capability_id, to_capability_id, edge_type)
    USING (org, project, from_capability_id, to_capability_id, edge_type)
ORDER BY org, project, from_capability_id, to_capability_id, edge_type
FOR UPDATE OF capability_dependency

-- name: save-capability-edges
UPDATE capability_dependency
SET edge_source = counted.source,
    observed_count = counted.observed_count,
    confidence_score = counted.confidence,
    shares = counted.shares::json,
    last_observed = counted.last_observed,
    looked_at = $11
FROM unnest(
    $1::text[], $2::text[], $3::text[]::uuid[], $4::text[]::uuid[], $5::text[], $6::text[],
    $7::integer[], $8::double precision[], $9::text[], $10::timestamptz[]
) AS counted (
    org, project, from_id, to_id, edge_type, source, observed_count, confidence, shares,
    last_observed
)
WHERE capability_dependency.org = counted.org AND capability_dependency.project = counted.project
    AND capability_dependency.from_capability_id = counted.from_id
    AND capability_dependency.to_capability_id = counted.to_id
    AND capability_dependency.edge_type = counted.edge_type

-- name: due-capability-edges
-- Those that were looked at before a time, and that no other replica looks at now.
SELECT
    org, project, from_capability_id::text AS from_id, to_capability_id::text AS to_id, edge_type,
    edge_source, observed_count, last_observed, shares, base_source, base_confidence
FROM capability_dependency
WHERE looked_at < $1 AND observed_count > 0
ORDER BY looked_at
LIMIT $2
FOR UPDATE SKIP LOCKED

-- name: forget-capability-edges
DELETE FROM capability_dependency
USING unnest($1::text[], $2::text[], $3::text[]::uuid[], $4::text[]::uuid[], $5::text[])
    AS gone (org, project, from_id, to_id, edge_type)
WHERE capability_dependency.org = gone.org AND capability_dependency.project = gone.project
    AND capability_dependency.from_capability_id = gone.from_id
    AND capability_dependency.to_capability_id = gone.to_id
    AND capability_dependency.edge_type = gone.edge_type

-- name: meet-tool-edges
INSERT INTO tool_dependency (
    org, project, from_tool_id, to_tool_id, edge_type, edge_source,
    observed_count
)
SELECT org, project, from_id, to_id, edge_type, 'inferred', 0
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
    AS met (org, project, from_id, to_id, edge_type)
ORDER BY org, project, from_id, to_id, edge_type
ON CONFLICT DO NOTHING
RETURNING
    org, project, from_tool_id::text AS from_id, to_tool_id::text AS to_id, edge_type

-- name: lock-tool-edges
SELECT
    org, project, from_tool_id::text AS from_id, to_tool_id::text AS to_id, edge_type,
    edge_source, observed_count, last_observed, shares, NULL AS base_source, 0 AS base_confidence
FROM tool_dependency
JOIN unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
    AS asked (org, project, from_tool_id, to_tool_id, edge_type)
    USING (org, project, from_tool_id, to_tool_id, edge_type)
ORDER BY org, project, from_tool_id, to_tool_id, edge_type
FOR UPDATE OF tool_dependency

-- name: save-tool-edges
UPDATE tool_dependency
SET edge_source = counted.source,
    observed_count = counted.observed_count,
    shares = counted.shares::json,
    last_observed = counted.last_observed,
    looked_at = $11
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::integer[],
    $8::double precision[], $9::text[], $10::timestamptz[]
) AS counted (
    org, project, from_id, to_id, edge_type, source, observed_count, confidence, shares,
    last_observed
)
WHERE tool_dependency.org = counted.org AND tool_dependency.project = counted.project
    AND tool_dependency.from_tool_id = counted.from_id
    AND tool_dependency.to_tool_id = counted.to_id
    AND tool_dependency.edge_type = counted.edge_type

-- name: due-tool-edges
-- Those that were looked at before a time, and that no other replica looks at now.
SELECT
    org, project, from_tool_id::text AS from_id, to_tool_id::text AS to_id, edge_type,
    edge_source, observed_count, last_observed, shares, NULL AS base_source, 0 AS base_confidence
FROM tool_dependency
WHERE looked_at < $1 AND observed_count > 0
ORDER BY looked_at
LIMIT $2
FOR UPDATE SKIP LOCKED

-- name: forget-tool-edges
DELETE FROM tool_dependency
USING unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
    AS gone (org, project, from_id, to_id, edge_type)
WHERE tool_dependency.org = gone.org AND tool_dependency.project = gone.project
    AND tool_dependency.from_tool_id = gone.from_id
    AND tool_dependency.to_tool_id = gone.to_id
    AND tool_dependency.edge_type = gone.edge_type

-- name: meet-mixed-edges
INSERT INTO capability_tool_edge (
    org, project, from_node, to_node, edge_type, edge_source,
    observed_count, confidence_score
)
SELECT org, project, from_id, to_id, edge_type, 'inferred', 0, 0
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
    AS met (org, project, from_id, to_id, edge_type)
ORDER BY org, project, from_id, to_id, edge_type
ON CONFLICT DO NOTHING
RETURNING
    org, project, from_node::text AS from_id, to_node::text AS to_id, edge_type

-- name: lock-mixed-edges
SELECT
    org, project, from_node::text AS from_id, to_node::text AS to_id, edge_type,
    edge_source, observed_count, last_observed, shares, NULL AS base_source, 0 AS base_confidence
FROM capability_tool_edge
JOIN unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
    AS asked (org, project, from_node, to_node, edge_type)
    USING (org, project, from_node, to_node, edge_type)
ORDER BY org, project, from_node, to_node, edge_type
FOR UPDATE OF capability_tool_edge

-- name: save-mixed-edges
UPDATE capability_tool_edge
SET edge_source = counted.source,
    observed_count = counted.observed_count,
    confidence_score = counted.confidence,
    shares = counted.shares::json,
    last_observed = counted.last_observed,
    looked_at = $11
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::integer[],
    $8::double precision[], $9::text[], $10::timestamptz[]
) AS counted (
    org, project, from_id, to_id, edge_type, source, observed_count, confidence, shares,
    last_observed
)
WHERE capability_tool_edge.org = counted.org AND capability_tool_edge.project = counted.project
    AND capability_tool_edge.from_node = counted.from_id
    AND capability_tool_edge.to_node = counted.to_id
    AND capability_tool_edge.edge_type = counted.edge_type

-- name: due-mixed-edges
-- Those that were looked at before a time, and that no other replica looks at now.
SELECT
    org, project, from_node::text AS from_id, to_node::text AS to_id, edge_type,
    edge_source, observed_count, last_observed, shares, NULL AS base_source, 0 AS base_confidence
FROM capability_tool_edge
WHERE looked_at < $1 AND observed_count > 0
ORDER BY looked_at
LIMIT $2
FOR UPDATE SKIP LOCKED

-- name: forget-mixed-edges
DELETE FROM capability_tool_edge
USING unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
    AS gone (org, project, from_id, to_id, edge_type)
WHERE capability_tool_edge.org = gone.org AND capability_tool_edge.project = gone.project
    AND capability_tool_edge.from_node = gone.from_id
    AND capability_tool_edge.to_node = gone.to_id
    AND capability_tool_edge.edge_type = gone.edge_type

-- When the registry has signed a version; NULL in rows from before, until they are signed anew.
ALTER TABLE capability_versions ADD COLUMN signed_at timestamptz;

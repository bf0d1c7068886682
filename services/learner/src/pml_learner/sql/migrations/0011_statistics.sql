CREATE FUNCTION analyze_trace_month(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ANALYZE %I', name);
END
$$;

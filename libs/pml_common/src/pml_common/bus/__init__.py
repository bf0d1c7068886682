"""The bus: typed messages over NATS JetStream (ADR 0001)."""

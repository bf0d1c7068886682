"""The bus: typed messages over NATS JetStream, with every hard part in sight (ADR 0001)."""

"""One file per message or request that the gateway answers."""

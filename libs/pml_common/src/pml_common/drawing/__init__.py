"""Drawings of structures as text: outline, Mermaid, Graphviz. Pure; imports contracts only."""

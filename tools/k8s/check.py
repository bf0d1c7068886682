"""`make k8s-check`: rendered overlays against the schemas of Kubernetes and of its extensions, and
against checkov. Its tools are fetched from package registries, for this check alone."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from deno import find_deno_bin

from tools.k8s.rendering import NAMES, ROOT, render
from tools.k8s.secrets import manifest

KUBERNETES = "1.37"
VALIDATOR = f"kubernetes-validate=={KUBERNETES}.0"
CHECKOV = "checkov==3.3.30"
MODELS = "npm:@kubernetes-models"
EXTENSIONS = {
    "keda.sh/v1alpha1": f"{MODELS}/keda@2.0.0/keda.sh/v1alpha1",
    "gateway.networking.k8s.io/v1": f"{MODELS}/gateway-api@2.0.0/gateway.networking.k8s.io/v1",
    "postgresql.cnpg.io/v1": f"{MODELS}/cloudnative-pg@2.0.0/postgresql.cnpg.io/v1",
}
"""Types and validators, made from the extensions' own definitions, of each API version."""

_STRICTLY = """
import sys, yaml, kubernetes_validate
for one in yaml.safe_load_all(sys.stdin):
    try:
        kubernetes_validate.validate(one, sys.argv[1], strict=True)
    except kubernetes_validate.ValidationError as error:
        where = "/".join(map(str, error.path))
        sys.exit(f"{one['kind']} {one['metadata']['name']}, {where}: {error.message}")
"""


def main() -> int:
    """Check every overlay; return the exit code."""
    for overlay in NAMES:
        text = render(overlay)
        manifests: list[dict[str, Any]] = list(yaml.safe_load_all(text))
        extended = [one for one in manifests if one["apiVersion"] in EXTENSIONS]
        plain = [one for one in manifests if one["apiVersion"] not in EXTENSIONS]
        _validate_plain(plain)
        _validate_extended(extended)
        _run_checkov(text)
        count = f"{len(plain)} manifests of Kubernetes {KUBERNETES}, {len(extended)} of extensions"
        print(f"{overlay}: {count}: schemas and checkov pass")
    with tempfile.TemporaryDirectory() as folder:
        _validate_plain(manifest("pml", Path(folder, "keys"))["items"])
    return 0


def _validate_plain(manifests: list[dict[str, Any]]) -> None:
    tool = ["uv", "run", "--no-project", "--quiet", "--with", VALIDATOR, "--with", "pyyaml"]
    text = yaml.safe_dump_all(manifests)
    _run([*tool, "python", "-W", "ignore", "-c", _STRICTLY, KUBERNETES], text)


def _validate_extended(manifests: list[dict[str, Any]]) -> None:
    """Type-check each as a literal, which refuses unknown fields, then validate its values."""
    lines: list[str] = []
    for number, one in enumerate(manifests):
        module, kind = EXTENSIONS[one["apiVersion"]], one["kind"]
        lines += [
            f'import {{ {kind} as Kind{number}, type I{kind} as I{number} }} from "{module}";',
            f"const one{number}: I{number} = {json.dumps(one)};",
            f"new Kind{number}(one{number}).validate();",
        ]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "check.ts")
        program.write_text("\n".join(lines), encoding="utf-8")
        _run([find_deno_bin(), "run", "--quiet", "--check", "--no-lock", str(program)])


def _run_checkov(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rendered.yaml")
        file.write_text(text, encoding="utf-8")
        config = str(ROOT / "deploy/k8s/checkov.yaml")
        tool = ["uv", "tool", "run", "--quiet", "--from", CHECKOV, "checkov"]
        _run([*tool, "--config-file", config, "--file", str(file)])


def _run(command: list[str], text: str = "") -> None:
    run = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=900, check=False
    )
    if run.returncode != 0:
        sys.exit(f"{' '.join(command[:6])} …: {run.stdout}{run.stderr}")


if __name__ == "__main__":
    sys.exit(main())

"""Build the images of the five services, tagged with the version, and their bills of materials."""

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from os import environ
from pathlib import Path

from tools.images.engine import Engine, NoEngine, find_engine

ROOT = Path(__file__).parents[2]
PINS = ROOT / "deploy/images/pins.env"
DOCKERFILE = ROOT / "deploy/images/Dockerfile"
BILLS = ROOT / "dist/images"
SERVICES = ("gateway", "analyzer", "executor", "learner", "registry")


def main() -> int:
    """Build what the arguments ask for; print names and sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-bills", action="store_true", help="no bills of materials")
    digests = parser.add_mutually_exclusive_group()
    digests.add_argument("--pinned", action="store_true", help="refuse base images without digest")
    digests.add_argument("--unpinned", action="store_true", help="base images of one's own")
    parser.add_argument(
        "--ca",
        default=environ.get("SSL_CERT_FILE"),
        help="file of certificates for registries (default: SSL_CERT_FILE)",
    )
    given = parser.parse_args()
    try:
        pins = read_pins(PINS.read_text(encoding="utf-8"))
        if given.unpinned:
            pins = {name: image.partition("@")[0] for name, image in pins.items()}
        elif floating := [image for image in pins.values() if "@sha256:" not in image]:
            told = f"not pinned by digest: {', '.join(floating)} (`make image-pins` does it)"
            if given.pinned:
                raise NoEngine(told)
            print(told, file=sys.stderr)
        build(find_engine(), version(), pins, ca=given.ca, bills=not given.no_bills)
    except NoEngine as error:
        print(f"images cannot be built: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(error.cmd[:3])} … failed with {error.returncode}", file=sys.stderr)
        return 1
    return 0


def build(
    engine: Engine, tag: str, pins: Mapping[str, str], *, ca: str | None, bills: bool
) -> None:
    """Build all targets; layers of the first serve the others."""
    arguments = {"VERSION": tag, "REVISION": revision(), "SOURCE": source(), **pins}
    common = ["--file", str(DOCKERFILE), *(word for pair in _given(arguments) for word in pair)]
    if ca is not None:
        common += ["--secret", f"id=ca,src={ca}"]
    for service in SERVICES:
        named = ("--target", service, "--tag", f"pml-{service}:{tag}")
        engine.build((*common, *named, str(ROOT)), load=True)
    if bills:
        output = ("--target", "sbom", "--output", str(BILLS))
        engine.build((*common, *output, str(ROOT)), load=False)
        print(f"bills of materials: {BILLS.relative_to(ROOT)}/*.cdx.json")
    print("\n| image | MB |\n| --- | --- |")
    for service in SERVICES:
        size = engine.run("image", "inspect", "--format", "{{.Size}}", f"pml-{service}:{tag}")
        print(f"| `pml-{service}:{tag}` | {round(int(size) / 1e6)} |")


def _given(arguments: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    return (("--build-arg", f"{name}={value}") for name, value in arguments.items())


def read_pins(text: str) -> dict[str, str]:
    """Parse lines of NAME=image; others are comments."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {name: image for name, _, image in (line.partition("=") for line in lines)}


def version() -> str:
    """The tag of images: what pyproject.toml says, which a tag of the commit must agree with.
    Raises NoEngine."""
    declared: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    tags = [tag for tag in _git("tag", "--points-at", "HEAD").split() if tag.startswith("v")]
    if tags and f"v{declared}" not in tags:
        raise NoEngine(f"this commit is {tags[0]}, pyproject.toml says {declared}")
    return declared


def revision() -> str:
    """The commit, with `-dirty` if files differ from it; `unknown` without version control."""
    return _git("describe", "--always", "--dirty", "--abbrev=40", "--match=") or "unknown"


def source() -> str:
    """The address of the code; `unknown` if its remote is no web address."""
    remote = _git("config", "--get", "remote.origin.url")
    return remote if remote.startswith("https://") else "unknown"


def _git(*words: str) -> str:
    done = subprocess.run(("git", *words), cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())

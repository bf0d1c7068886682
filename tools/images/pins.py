"""Pin base images in deploy/images/pins.env by the digests that their registry has now."""

import subprocess
import sys

from tools.images.build import PINS, read_pins
from tools.images.engine import Engine, NoEngine, find_engine


def main() -> int:
    """Pull each base image and write its digest."""
    try:
        engine = find_engine()
        text = PINS.read_text(encoding="utf-8")
        for name, image in read_pins(text).items():
            pinned = digest_of(engine, image.partition("@")[0])
            text = text.replace(f"{name}={image}", f"{name}={pinned}")
            print(f"{name}={pinned}")
    except NoEngine as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"its registry does not give it: {error.stderr}", file=sys.stderr)
        return 1
    PINS.write_text(text, encoding="utf-8")
    return 0


def digest_of(engine: Engine, image: str) -> str:
    """Return `name:tag@sha256:…` of an image, pulled now. Raises CalledProcessError."""
    engine.run("pull", "--quiet", image)
    digest = engine.run("image", "inspect", "--format", "{{index .RepoDigests 0}}", image)
    return f"{image}@{digest.partition('@')[2]}"


if __name__ == "__main__":
    sys.exit(main())

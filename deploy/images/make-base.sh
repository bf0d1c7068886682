#!/bin/sh
# Makes the base image of the builds from Debian's packages, for machines that reach no registry of
# images: Debian 12 has the same Python as the image that it stands in for. Needs root, debootstrap
# and a Docker engine. Then: make images ARGS=--unpinned. DEBIAN_MIRROR says where packages come from.
set -eu

image=$(sed -n 's/^PYTHON_IMAGE=\([^@]*\).*/\1/p' "$(dirname "$0")/pins.env")
docker=${DOCKER:-docker}
if [ "${1-}" != --again ] && "$docker" image inspect "$image" >/dev/null 2>&1; then
  echo "$image is there (--again makes it again)"
  exit
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$root" \
  "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$root.log" 2>&1 || {
  cat "$root.log" >&2
  exit 1
}
rm -f "$root.log"
tar -C "$root" --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' -c . |
  "$docker" import -c 'CMD ["python3"]' - "$image"

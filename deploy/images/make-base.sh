#!/bin/sh
# Makes base images from Debian's packages, for machines that reach no registry of images: `python`
# (default), which the builds of the services start from (Debian 12 has the same Python as the image
# that it stands in for), or `debian`, which stand-ins start from. Needs root, debootstrap and a
# Docker engine. Then: make images ARGS=--unpinned. DEBIAN_MIRROR says where packages come from.
set -eu

here=$(dirname "$0")
again=
kind=python
for word; do
  case "$word" in
    --again) again=yes ;;
    python | debian) kind=$word ;;
    *) echo "usage: $0 [--again] [python|debian]" >&2 && exit 2 ;;
  esac
done
case "$kind" in
  python)
    image=$(sed -n 's/^PYTHON_IMAGE=\([^@]*\).*/\1/p' "$here/pins.env")
    suite=bookworm packages=python3,python3-venv,ca-certificates command=python3
    ;;
  debian)
    image=$(sed -n 's/^ARG DEBIAN_IMAGE=//p' "$here/stand-ins.Dockerfile")
    suite=trixie packages=ca-certificates command=sh
    ;;
esac
docker=${DOCKER:-docker}
if [ -z "$again" ] && "$docker" image inspect "$image" >/dev/null 2>&1; then
  echo "$image is there (--again makes it again)"
  exit
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include="$packages" "$suite" "$root" \
  "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$root.log" 2>&1 || {
  cat "$root.log" >&2
  exit 1
}
rm -f "$root.log"
tar -C "$root" --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' -c . |
  "$docker" import -c "CMD [\"$command\"]" - "$image"

#!/usr/bin/env bash
# Usage: install.sh FOLDER. Downloads NVIDIA's run-time compiler (NVRTC) for the tests of this package, and prints the path
# of its library, for RUNTIME_TEST_NVRTC. Needs python3 with venv, but no GPU. The other tools are Debian packages:
# spirv-tools, clang, valgrind.
set -euo pipefail

folder=$1
find_library() { find "$folder" -name 'libnvrtc.so.12' -print -quit 2>/dev/null; }

if [ -z "$(find_library)" ]; then
    python3 -m venv "$folder" >&2
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "nvidia-cuda-nvrtc-cu12>=12.4,<13" >&2
fi
realpath "$(find_library)"

#!/usr/bin/env bash
# Usage: install.sh FOLDER. Downloads NVIDIA's run-time compiler (NVRTC) and assembler (nvJitLink) for the tests of this package
# and of runtime-gpu, and prints the path of NVRTC's library, for RUNTIME_TEST_NVRTC; the assembler is found from there. Needs python3 with venv, but no GPU. The other tools are Debian packages:
# spirv-tools, clang, valgrind.
set -euo pipefail

folder=$1
find_library() { find "$folder" -name "$1" -print -quit 2>/dev/null; }

if [ -z "$(find_library libnvrtc.so.12)" ] || [ -z "$(find_library libnvJitLink.so.12)" ]; then
    python3 -m venv "$folder" >&2
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
        "nvidia-cuda-nvrtc-cu12>=12.4,<13" "nvidia-nvjitlink-cu12>=12.4,<13" >&2
fi
realpath "$(find_library libnvrtc.so.12)"

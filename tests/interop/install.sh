#!/usr/bin/env bash
# Installs a Python environment for the tests that need one, and prints its path, for RUNTIME_TEST_PYTHON:
# install.sh FOLDER [--without-torch]. Needs python3 with venv; for PyTorch (540 MB to load) also cc, nm and readelf.
set -euo pipefail

folder=$1
python="$folder/bin/python"
here=$(cd "$(dirname "$0")" && pwd)

if [ ! -x "$python" ]; then
    python3 -m venv "$folder" >&2
fi
install() { "$python" -m pip install --quiet --disable-pip-version-check "$@" >&2; }
has() { "$python" -c "import $1" 2>/dev/null; }

has numpy && has safetensors || install "numpy>=2.1" "safetensors>=0.5" typing-extensions
has tvm || install "apache-tvm==0.27.0.post1"
if [ "${2:-}" != --without-torch ] && ! has torch; then
    # Without its CUDA dependencies: on a CPU, stubs suffice.
    install --no-deps --no-cache-dir "torch==2.15.0"
    "$python" "$here/python/cuda_stand_ins.py"
    "$python" -c "import torch" >&2
fi
realpath --no-symlinks "$python"

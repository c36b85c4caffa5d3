#!/usr/bin/env bash
# Installs Intel's OpenCL runtime for CPUs and prints the path of its driver, for RUNTIME_TEST_INTEL_OPENCL: install.sh FOLDER.
# Needs python3 with venv and 0.5 GB of disk (1 GB during installation). The runtime has a licence of its own: it is used for
# tests only and never redistributed. The other drivers and tools are Debian packages: ocl-icd-libopencl1, pocl-opencl-icd,
# oclgrind, clang-15, llvm-spirv-15.
set -euo pipefail

folder=$1
find_driver() { find "$folder" -name 'libintelocl.so' -print -quit 2>/dev/null; }

if [ -z "$(find_driver)" ]; then
    python3 -m venv "$folder" >&2
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir intel-opencl-rt intel-cmplr-lib-rt >&2
    # Half of it is copies of the same libraries, and files that only a linker needs.
    rm -f "$folder/lib/icx-lto.so"
    for library in "$folder"/lib/*.so; do
        for copy in "$library".*; do
            if cmp --quiet "$library" "$copy"; then ln --force "$library" "$copy"; fi
        done
    done
fi
realpath "$(find_driver)"

#!/bin/sh
# Runs every portable kernel once, at a small size, and chains of them fused, under compute-sanitizer's racecheck:
# sh kernels/racecheck.sh [DEVICE]
# RUNTIME is the path of the command, by default that of the enclosing bundle. TOOL selects another tool, e.g. memcheck.
set -u
folder=$(dirname "$0")
runtime=${RUNTIME:-$folder/../bin/runtime}
device=${1:-cuda:0}
tool=${TOOL:-racecheck}
failed=""

check() {
    kernel=$1
    shift
    changes=""
    for change in "$@"; do changes="$changes --set $change"; done
    echo "== $kernel $*"
    # shellcheck disable=SC2086 # Split into words on purpose.
    compute-sanitizer --tool "$tool" --error-exitcode 9 "$runtime" run "$folder/$kernel.toml" --device "$device" $changes ||
        failed="$failed $kernel"
}

# A chain runs in a worker process, whose exit code is not that of the tool: chain "KERNEL…" CHANGE…
chain() {
    kernels=$1
    shift
    changes=""
    for change in "$@"; do changes="$changes --set $change"; done
    specs=""
    for kernel in $kernels; do specs="$specs $folder/$kernel.toml"; done
    echo "== fused: $kernels $*"
    # shellcheck disable=SC2086 # Split into words on purpose.
    output=$(compute-sanitizer --tool "$tool" --target-processes all "$runtime" fuse $specs --device "$device" --repeat 1 --number 1 \
        --warmup 1 $changes 2>&1) || failed="$failed fused:$(echo "$kernels" | tr ' ' '+')"
    printf '%s\n' "$output"
    if printf '%s\n' "$output" | grep -Eq 'SUMMARY: [1-9]'; then
        failed="$failed reported:$(echo "$kernels" | tr ' ' '+')"
    fi
}

check bias rows=20 columns=1000
check blur n=10000
check convolution height=100 width=150
check gelu rows=20 columns=1000
check gemm_f32 m=132 n=260 k=52
check histogram n=100000
check layer_norm rows=20 columns=1000
check mandelbrot width=200 height=150
check matmul m=130 n=140 k=150
check multiply_subtract n=10000
check n_body n=1000
check reduction n=100000
check relu n=10000
check residual rows=20 columns=1000
check saxpy n=10000
check scale n=10000
check scale_mask rows=20 columns=1000
check scan n=100000
check scan_offset n=100000
check sharpen n=10000
check softmax rows=20 columns=1000
check transpose rows=100 columns=130
check vector_add n=10000

chain "relu scale" n=10000
chain "vector_add relu scale multiply_subtract" n=10000
chain "bias gelu residual" rows=20 columns=1000
chain "scale_mask softmax" rows=20 columns=1000
chain "bias gelu residual layer_norm" rows=20 columns=1000

for spec in "$folder"/*.toml; do
    grep -q "^check $(basename "$spec" .toml) " "$0" || failed="$failed $(basename "$spec" .toml)-is-not-checked"
done
if [ -n "$failed" ]; then
    echo "FAILED:$failed"
    exit 1
fi
echo "$tool: all kernels pass"

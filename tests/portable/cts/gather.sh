#!/usr/bin/env bash
# Usage: gather.sh CLONE FOLDER. Makes JavaScript of the WebGPU conformance suite out of a clone of github.com/gpuweb/cts or of a fork of
# it, which may be bare. FOLDER is then the value of RUNTIME_TEST_CTS. Needs npm, which brings esbuild.
set -euo pipefail

commit=93cb942b
clone=$1
folder=$2
mkdir -p "$folder/src"
git -C "$clone" archive "$commit" src/common src/webgpu src/external | tar --extract --directory "$folder"
if [ ! -x "$folder/node_modules/.bin/esbuild" ]; then
    npm install --silent --no-fund --no-audit --prefix "$folder" esbuild@0.28
fi
cd "$folder"
find src -name '*.ts' ! -name '*.d.ts' -print0 | xargs -0 node_modules/.bin/esbuild \
    --outdir=out --outbase=src --format=esm --target=node20 --log-level=error
(cd src && find . -name '*.js' -exec cp --parents {} ../out/ \;)
echo '{"type": "module"}' > out/package.json
echo "$commit" > commit

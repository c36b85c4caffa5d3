#!/usr/bin/env python3
"""Usage: gather.py CLONES FOLDER. Copies the shaders that files.txt lists out of clones of their repositories.

CLONES holds a clone or bare repository per project, named OWNER+NAME or OWNER+NAME/repo. Each line of files.txt is a repository, a commit
and a path, and what the project itself does to the file before it compiles it: `+PATH` appends another file, `NAME=VALUE` replaces a
placeholder or a macro (`{NAME}=VALUE` only the placeholder), or is the value of an override, and `SCRIPT#NAME` is the output NAME of the
project's own script, which is run. A value has `\\n` for a line break.
FOLDER is then the value of RUNTIME_TEST_SHADERS for the tests `corpus` and `corpus_runs`.
"""
import functools
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile


def git(clone, *arguments):
    return subprocess.run(["git", "-C", str(clone), *arguments], capture_output=True, check=True).stdout


@functools.lru_cache(maxsize=None)
def outputs(clone, commit, script):
    """What a script writes into its --output_dir, by name."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        tarfile.open(fileobj=io.BytesIO(git(clone, "archive", commit, str(pathlib.PurePosixPath(script).parent)))).extractall(place)
        written = place / "output"
        command = [sys.executable, script, "--input_dir", str(pathlib.PurePosixPath(script).parent)]
        command += ["--output_dir", str(written), "--output_file", str(place / "output.hpp")]
        subprocess.run(command, cwd=place, check=True)
        return {file.stem: file.read_text() for file in written.iterdir()}


class Shader:
    """A line of files.txt."""

    def __init__(self, clones, line):
        self.repository, self.commit, self.path, *words = line.split()
        self.name = self.repository.replace("/", "+")
        places = (clones / self.name / "repo", clones / self.name)
        self.clone = next((place for place in places if place.exists()), places[-1])
        self.appended = [word[1:] for word in words if word.startswith("+")]
        self.values = dict(word.replace(r"\n", "\n").split("=", 1) for word in words if not word.startswith("+"))
        self.included = set()

    def show(self, path):
        if "#" in path:
            script, name = path.split("#")
            return outputs(self.clone, self.commit, script)[name]
        return git(self.clone, "show", f"{self.commit}:{path}").decode()

    def text(self):
        text = "\n".join(map(self.show, [self.path, *self.appended]))
        text = "\n".join(self.lines(text)) if self.appended or self.values or self.includes(text) else text
        for name, value in self.values.items():
            if name.startswith("{"):
                text = text.replace(name, value)
                continue
            text = re.sub(rf"\{{\{{\s*{re.escape(name)}\s*\}}\}}|\{{{re.escape(name)}\}}", lambda _: value, text)
            if not re.search(rf"^\s*[^/\n]*(override|let|const)\s+{name}\b", text, re.MULTILINE):
                text = re.sub(rf"\b{re.escape(name)}\b", lambda _: value, text)
        return text

    @staticmethod
    def includes(text):
        return re.search(r'^\s*(#import +\w+$|#include +"|use +[\w.]+\.wgsl;)', text, re.MULTILINE)

    def lines(self, text):
        """The lines that the conditions leave, with the files that they include, each once."""
        active = []
        for line in text.splitlines():
            directive, _, rest = line.strip().partition(" ")
            name = rest.split()[0].strip('";') if rest.split() else ""
            if directive in ("#ifdef", "#ifndef"):
                active.append((name in self.values) == (directive == "#ifdef"))
            elif directive == "#else":
                active[-1] = not active[-1]
            elif directive == "#endif":
                active.pop()
            elif not all(active):
                continue
            elif self.includes(line):
                if name not in self.included:
                    self.included.add(name)
                    yield from self.lines(self.find(name))
            else:
                yield line

    def find(self, name):
        """A file beside the shader, in a folder `shared` there, or above."""
        for folder in pathlib.PurePosixPath(self.path).parents:
            for path in (folder / name, folder / "shared" / f"{name}.wgsl"):
                try:
                    return self.show(str(path))
                except subprocess.CalledProcessError:
                    pass
        raise FileNotFoundError(name)


def main():
    clones, folder = map(pathlib.Path, sys.argv[1:])
    missing = 0
    for line in (pathlib.Path(__file__).parent / "files.txt").read_text().splitlines():
        shader = Shader(clones, line)
        try:
            text = shader.text()
        except (subprocess.CalledProcessError, FileNotFoundError, IndexError, KeyError) as error:
            missing += 1
            print(f"{shader.repository} {shader.commit}: {shader.path} is missing: {error}", file=sys.stderr)
            continue
        target = folder / shader.name / shader.path.replace("#", "/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    sys.exit(1 if missing else 0)


main()

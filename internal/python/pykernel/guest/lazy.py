"""Kernel modules that not every session needs: lazy.load("contracts").

In the wasm tier they are in the image. A process of its own loads them when they
are first wanted, since compiling them takes longer than all else at its start."""

load = None  # (name) -> module; set by boot

// Package python has the Python that runs behind every wall, and its packages. Pykernel is the
// runtime in the guest and the host's end of its connection. Wheels finds packages of PyPI and
// checks them. The interpreter as WebAssembly is in internal/machine, and the analyser of Python
// in internal/plan. Nothing here starts a process.
package python

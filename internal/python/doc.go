// Package python contains the Python code that runs behind every wall, and handles Python packages.
// Package pykernel is the runtime in the guest and the host's end of its connection. Package wheels
// finds packages on PyPI and checks them. The WebAssembly interpreter is in internal/machine, and
// the Python analyser in internal/plan. Nothing here starts a process.
package python

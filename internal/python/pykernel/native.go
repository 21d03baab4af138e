package pykernel

import (
	"bytes"
	"context"
	_ "embed" // the first Python code of a native guest
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

//go:embed native/native.py
var nativeSource string

//go:embed native/compile.py
var compileSource string

// NativeLoader returns the code with which CPython is started, by -c. The code reads the rest from
// the connection, which is descriptor 3. options are additional arguments of the function start in
// native/native.py, or empty.
func NativeLoader(options string) string {
	return nativeLoader + "native.start(parts[1], parts[2], " + options + ")\n"
}

const nativeLoader = `import os
def read(n):
    data = b""
    while len(data) < n:
        part = os.read(3, n - len(data))
        if not part: os._exit(0)
        data += part
    return data
parts = [read(int.from_bytes(read(4), "little")) for _ in "nbc"]
native = __import__("types").ModuleType("native")
native.__builtins__ = dict(vars(__import__("builtins")))
exec(compile(parts[0], "<rlm native.py>", "exec"), native.__dict__)
`

// Version is a version of Python: major, minor, micro.
type Version [3]int

// maxCompiled bounds the compiled runtime, which has about a megabyte, in bytes.
const maxCompiled = 16 << 20

// Compile makes a host interpreter compile the runtime, for Load to send to other processes of the
// same interpreter. cmd starts the interpreter, which runs only our code and so needs no wall.
func Compile(cmd *exec.Cmd) ([]byte, error) {
	sources, err := json.Marshal(Sources())
	if err != nil {
		return nil, fmt.Errorf("cannot encode the Python runtime: %w", err)
	}

	cmd.Args = append(cmd.Args, "-I", "-X", "utf8", "-c", compileSource)
	cmd.Stdin = bytes.NewReader(sources)
	compiled, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot compile the Python runtime with %s: %w", cmd.Path, err)
	}
	if len(compiled) > maxCompiled {
		return nil, fmt.Errorf(
			"the Python runtime that %s compiled has more than %d bytes", cmd.Path, maxCompiled,
		)
	}

	return compiled, nil
}

// Load loads the runtime into a process started with NativeLoader. The result of Compile for the
// same interpreter saves the process from compiling the runtime itself; it may be empty.
func Load(
	ctx context.Context, conn io.ReadWriteCloser, control session.Control, compiled []byte,
) (*session.Connection, Version, error) {
	c := session.NewConnection(conn, control)
	var head []byte
	for _, part := range []string{nativeSource, Boot(), string(compiled)} {
		head = binary.LittleEndian.AppendUint32(head, uint32(len(part))) //nolint:gosec // our own
		head = append(head, part...)
	}
	c.Send(head)

	version, err := awaitReady(ctx, c)
	if err != nil {
		_ = c.Close() // the caller is about to end the process
		return nil, version, fmt.Errorf("cannot load the Python runtime: %w", err)
	}
	return c, version, nil
}

func awaitReady(ctx context.Context, c *session.Connection) (Version, error) {
	var version Version
	payload, err := c.Await(ctx, wire.KindReady)
	if err != nil {
		return version, err
	}
	if len(payload) != 4*len(version) {
		return version, wire.ErrMessage
	}

	for i := range version {
		version[i] = int(binary.LittleEndian.Uint32(payload[4*i:]))
	}
	return version, nil
}

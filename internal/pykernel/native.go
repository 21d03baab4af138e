package pykernel

import (
	"context"
	_ "embed" // the first Python that a native guest runs
	"encoding/binary"
	"fmt"
	"io"

	"github.com/rlmhq/rlm/internal/session"
	"github.com/rlmhq/rlm/internal/session/wire"
)

//go:embed native/native.py
var nativeSource string

// NativeLoader is what a CPython is started with, by -c: it reads the rest from the
// connection, which is descriptor 3. Options are further arguments of the function
// start in native/native.py, empty for none.
func NativeLoader(options string) string {
	return nativeLoader + "native.start(parts[1], " + options + ")\n"
}

const nativeLoader = `import os
def read(n):
    data = b""
    while len(data) < n:
        part = os.read(3, n - len(data))
        if not part: os._exit(0)
        data += part
    return data
parts = [read(int.from_bytes(read(4), "little")).decode() for _ in "nb"]
native = __import__("types").ModuleType("native")
native.__builtins__ = dict(vars(__import__("builtins")))
exec(compile(parts[0], "<rlm native.py>", "exec"), native.__dict__)
`

// Version is a version of Python: major, minor, micro.
type Version [3]int

// Load loads the runtime into a process that was started with NativeLoader.
func Load(
	ctx context.Context, conn io.ReadWriteCloser, control session.Control,
) (*session.Connection, Version, error) {
	c := session.NewConnection(conn, control)
	var head []byte
	for _, part := range []string{nativeSource, Boot()} {
		head = binary.LittleEndian.AppendUint32(head, uint32(len(part))) //nolint:gosec // our own
		head = append(head, part...)
	}
	c.Send(head)

	version, err := awaitReady(ctx, c)
	if err != nil {
		_ = c.Close() // the process will be ended
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

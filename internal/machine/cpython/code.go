package cpython

import (
	_ "embed" // the description of the machine code
	"encoding/json"

	"github.com/rlmhq/rlm/internal/machine/cpython/manifest"
)

//go:embed code.json
var codeFile []byte

// machineCode describes the code for every architecture.
var machineCode = mustDecode[manifest.MachineCode](codeFile)

// MachineCode describes the machine code of the module, by architecture. Do not change its maps:
// they are shared.
func MachineCode() manifest.MachineCode { return machineCode }

func mustDecode[T any](data []byte) (v T) {
	if err := json.Unmarshal(data, &v); err != nil {
		panic("cpython: an embedded manifest: " + err.Error())
	}
	return v
}

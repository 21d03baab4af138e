package connect

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
)

var update = flag.Bool("update", false, "write the schema of the protocol")

// schemaFile contains the types of all messages, for the authors of clients.
const schemaFile = "../../../docs/generated/session-protocol.schema.json"

// ofServerSide contains the methods that the server calls.
var ofServerSide = map[string]method{
	"host/call":      {params: reflect.TypeFor[callParams](), result: reflect.TypeFor[callResult]()},
	"session/output": {params: reflect.TypeFor[outputParams]()},
}

func TestTheSchemaIsThatOfTheCode(t *testing.T) {
	anything := &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[jsonrpc.Raw]():     {},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
	}}
	describe := func(t *testing.T, of reflect.Type) *jsonschema.Schema {
		t.Helper()
		if of == nil {
			return nil
		}
		schema, err := jsonschema.ForType(of, anything)
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
	type described struct {
		Params *jsonschema.Schema `json:"params"`
		Result *jsonschema.Schema `json:"result,omitempty"`
	}
	document := struct {
		Protocol int                  `json:"protocol"`
		Client   map[string]described `json:"client"`
		Server   map[string]described `json:"server"`
		Error    *jsonschema.Schema   `json:"error_data"`
	}{Protocol, map[string]described{}, map[string]described{}, describe(t, reflect.TypeFor[details]())}
	for name, m := range methods {
		document.Client[name] = described{describe(t, m.params), describe(t, m.result)}
	}
	for name, m := range ofServerSide {
		document.Server[name] = described{describe(t, m.params), describe(t, m.result)}
	}

	want, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%s is stale: go test ./server/internal/connect -run Schema -update", schemaFile)
	}
}

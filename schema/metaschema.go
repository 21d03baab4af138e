package schema

import (
	"embed"
	"fmt"
	"sync"
)

//go:embed metaschema/*.json
var metaschemaFiles embed.FS

// metaschema describes which documents are schemas. It is compiled on first use.
type metaschema struct {
	file string
	once sync.Once
	root *subschema
}

// The metaschemas of the dialects. That of 2020-12 has all vocabularies in one document.
var (
	newMetaschema = &metaschema{file: "metaschema/2020-12.json"}
	oldMetaschema = &metaschema{file: "metaschema/draft-07.json"}
)

// compile returns the compiled document. It panics if the document is invalid, which a test
// would have found.
func (m *metaschema) compile() *subschema {
	m.once.Do(func() {
		text, err := metaschemaFiles.ReadFile(m.file)
		if err != nil {
			panic(err)
		}
		document, err := decode(text, schemaBounds)
		if err != nil {
			panic(err)
		}
		if m.root, err = compileUnchecked(document); err != nil {
			panic(err)
		}
	})
	return m.root
}

// checkByMetaschema returns the reason why a part of a document is not a schema, or nil.
func checkByMetaschema(n, document *node) error {
	meta := newMetaschema
	if isOldDraft(document) {
		meta = oldMetaschema
	}
	v := validator{}
	if found := v.apply(meta.compile(), n, nil); found != nil {
		return fmt.Errorf("it is not a JSON Schema: %s", listViolations(found)[0])
	}
	return nil
}

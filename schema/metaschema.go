package schema

import (
	"embed"
	"fmt"
	"sync"
)

//go:embed metaschema/*.json
var metaschemaFiles embed.FS

// metaschema says which documents are schemas. It is compiled when it is first needed.
type metaschema struct {
	file string
	once sync.Once
	root *subschema
}

// There is one for each dialect. That of 2020-12 has all vocabularies in one document.
var (
	newMetaschema = &metaschema{file: "metaschema/2020-12.json"}
	oldMetaschema = &metaschema{file: "metaschema/draft-07.json"}
)

// compile returns the compiled document. It panics if the document is wrong, which a test
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

// checkByMetaschema reports what keeps a part of a document from being a schema.
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

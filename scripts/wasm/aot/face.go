package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/rlmhq/rlm/internal/machine/aot"
)

// face is the interface of a module, in the form of interface.json.
type face struct {
	Imports []aot.Signature
	Exports []aot.Signature
	// GlobalNames are the exported globals.
	GlobalNames []string

	imports, exports []prototype // in the same order
	fields           []string    // the globals' fields
}

// prototype is a C function of the interface.
type prototype struct {
	result, name, self string // self is the first parameter, which all functions have
	params             []string
}

var (
	importLine = regexp.MustCompile(`(?m)^/\* import: '(.*)' '(.*)' \*/\n(.*)$`)
	exportLine = regexp.MustCompile(`(?m)^/\* export: '(.*)' \*/\n(.*)$`)
	headLine   = regexp.MustCompile(`^(void|u32|u64|f32|f64) (w2c_\w+)` +
		`\(((?:struct )?w2c_\w+\*)((?:, (?:u32|u64|f32|f64))*)\);$`)
	globalLine = regexp.MustCompile(`^(u32|u64|f32|f64)\* w2c_guest_(\w+)\(w2c_guest\* instance\);$`)
)

const memoryLine = "wasm_rt_memory_t* w2c_guest_memory(w2c_guest* instance);"

// readInterface reads the declarations in guest.h.
func (m *module) readInterface() error {
	for _, match := range importLine.FindAllStringSubmatch(m.files["guest.h"], -1) {
		p, err := parsePrototype(match[3])
		if err != nil {
			return err
		}
		m.face.imports = append(m.face.imports, p)
		m.face.Imports = append(m.face.Imports, p.signature(match[1], match[2]))
	}

	hasMemory := false
	for _, match := range exportLine.FindAllStringSubmatch(m.files["guest.h"], -1) {
		name, line := match[1], match[2]
		if line == memoryLine {
			hasMemory = true
			continue
		}
		if global := globalLine.FindStringSubmatch(line); global != nil {
			m.face.GlobalNames = append(m.face.GlobalNames, name)
			m.face.fields = append(m.face.fields, "w2c_"+global[2])
			continue
		}
		p, err := parsePrototype(line)
		if err != nil {
			return err
		}
		m.face.exports = append(m.face.exports, p)
		m.face.Exports = append(m.face.Exports, p.signature("", name))
	}
	if !hasMemory {
		return fmt.Errorf("the module exports no memory")
	}

	return nil
}

func parsePrototype(line string) (prototype, error) {
	match := headLine.FindStringSubmatch(line)
	if match == nil {
		return prototype{}, fmt.Errorf("guest.h declares %q, which a guest cannot have", line)
	}
	p := prototype{result: match[1], name: match[2], self: match[3]}
	if match[4] != "" {
		p.params = strings.Split(match[4][2:], ", ")
	}

	if len(p.params) > aot.Slots {
		return p, fmt.Errorf("%s has more than %d parameters", p.name, aot.Slots)
	}
	return p, nil
}

// letters stand for types in signatures.
var letters = map[string]string{"u32": "i", "u64": "I", "f32": "f", "f64": "F"}

func (p prototype) signature(module, name string) aot.Signature {
	s := aot.Signature{Module: module, Name: name, Result: letters[p.result]}
	for _, kind := range p.params {
		s.Params += letters[kind]
	}

	return s
}

// glue returns C code, with a function for each import that switches to Go, and a function for each
// export that Go can call.
func (f *face) glue() string {
	var s strings.Builder
	s.WriteString("#include \"guest.h\"\n#include \"aot.h\"\n\n")
	for i, p := range f.imports {
		var params, store strings.Builder
		for k, kind := range p.params {
			fmt.Fprintf(&params, ", %s a%d", kind, k)
			fmt.Fprintf(&store, "  c->slots[%d] = aot_of_%s(a%d);\n", k, kind, k)
		}
		fmt.Fprintf(&s, "%s %s(%s instance%s) {\n", p.result, p.name, p.self, params.String())
		fmt.Fprintf(&s, "  struct aot_context *c = aot_context(instance);\n%s", store.String())
		fmt.Fprintf(&s, "  aot_exit(c, %d);\n", i+1)
		if p.result != "void" {
			fmt.Fprintf(&s, "  return aot_as_%s(c->slots[0]);\n", p.result)
		}
		s.WriteString("}\n\n")
	}

	for i, p := range f.exports {
		args := make([]string, len(p.params))
		for k, kind := range p.params {
			args[k] = fmt.Sprintf(", aot_as_%s(slots[%d])", kind, k)
		}
		call := fmt.Sprintf("%s(instance%s)", p.name, strings.Join(args, ""))
		if p.result != "void" {
			call = fmt.Sprintf("slots[0] = aot_of_%s(%s)", p.result, call)
		}
		fmt.Fprintf(&s, "void aot_export_%d(w2c_guest *instance, u64 *slots) { %s; }\n", i, call)
	}

	s.WriteString("\n/* The size of the memory in pages and in bytes, and the exported globals. */\n" +
		"__attribute__((used)) const u64 aot_offsets[] = {\n" +
		"  offsetof(w2c_guest, w2c_memory.pages),\n  offsetof(w2c_guest, w2c_memory.size),\n")
	for _, field := range f.fields {
		fmt.Fprintf(&s, "  offsetof(w2c_guest, %s),\n", field)
	}
	s.WriteString("};\n")
	s.WriteString("\n#if WASM_RT_MEMCHECK_GUARD_PAGES\n" +
		"/* This code relies on faults. */\n__attribute__((used)) const u8 aot_guarded = 1;\n#endif\n")
	return s.String()
}

// importNames returns the names of the imports as C strings.
func (f *face) importNames() string {
	var s strings.Builder
	for _, i := range f.Imports {
		fmt.Fprintf(&s, "%q,\n", i.Name)
	}

	return s.String()
}

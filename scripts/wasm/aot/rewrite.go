package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rewrite changes wasm2c's output for one module; files are keyed by name:
//
//   - A guest's memory is at a fixed distance behind its instance, so the instance's pointer is
//     also the base of the memory. wasm2c's code reads the base again after each store.
//   - The table of functions is constant, as is the type of each of its functions.
//   - A function traps if its frame reaches below the limit of its stack, or switches to the host
//     if the host requests this.
//   - A load whose value is not used may be dropped, but not its check. If a fault is the check, no
//     load may be dropped.
//
// It adds glue.c, with a function for each import and each export; table.S with the table;
// interface.json, which describes the interface; and imports.inc, its imports in C.
func rewrite(files map[string]string) (map[string]string, error) {
	m := &module{files: files, types: map[string]int{}}
	for _, step := range []func() error{
		m.checkNoData, m.readStart, m.readTypes, m.readTable, m.readInterface, m.rewriteHeader, m.rewriteUnits,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}

	out := map[string]string{
		"guest.h": files["guest.h"], "glue.c": m.face.glue(), "table.S": m.tableSource(),
		"imports.inc": m.face.importNames(),
	}
	text, err := json.MarshalIndent(m.face, "", "  ")
	if err != nil {
		return nil, err
	}

	out["interface.json"] = string(text) + "\n"
	for name, text := range m.files {
		out[name] = text
	}
	return out, nil
}

type module struct {
	files map[string]string
	types map[string]int // wasm2c's name of a type, to our number for it, from 1
	table []tableEntry
	size  int
	face  face
	// hasGlobals means that wasm2c wrote a function that sets globals.
	hasGlobals bool
}

// tableEntry is an entry of the table: the name of a C function, and the number of its type.
type tableEntry struct {
	function string
	kind     int
}

func (m *module) isUnit(name string) bool { return strings.HasSuffix(name, ".c") }

// units returns the names of the C files.
func (m *module) units() []string {
	var names []string
	for name := range m.files {
		if m.isUnit(name) {
			names = append(names, name)
		}
	}

	slices.Sort(names)
	return names
}

// checkNoData rejects a module whose memory or table would need to be initialised at run time.
func (m *module) checkNoData() error {
	if m.files["guest.h"] == "" || m.files["guest-impl.h"] == "" || len(m.units()) == 0 {
		return errors.New("the folder has no output of wasm2c with -n guest")
	}
	for _, name := range m.units() {
		for _, word := range []string{
			"data_segment_data", "funcref_table_set", "funcref_table_copy(", "funcref_table_fill",
			"wasm_rt_grow_funcref_table", "externref", "try_", "wasm_rt_memory_t* w2c_guest_memory_",
		} {
			if strings.Contains(m.files[name], word) {
				return fmt.Errorf("%s: the module uses %q, which a guest cannot have", name, word)
			}
		}
	}

	return nil
}

var (
	instantiate = regexp.MustCompile(`(?s)\nvoid wasm2c_guest_instantiate\([^\n]*\) \{\n(.*?)\n\}\n`)
	startLine   = regexp.MustCompile(`^#|^  (?:assert|uintptr_t segue_saved_base = |WASM_RT_SEGUE_WRITE_BASE)\b|` +
		`^  init_(?:instance_import|globals|tables|memories|elem_instances)\(instance[^;]*\);$`)
)

// readStart rejects a module whose start does more than set globals and the table. rewriteUnits
// removes the start code, except for the globals.
func (m *module) readStart() error {
	found := 0
	for _, name := range m.units() {
		for _, match := range instantiate.FindAllStringSubmatch(m.files[name], -1) {
			found++
			for line := range strings.SplitSeq(match[1], "\n") {
				if !startLine.MatchString(line) {
					return fmt.Errorf("the module begins with %q, which a guest cannot do", line)
				}
				m.hasGlobals = m.hasGlobals || line == "  init_globals(instance);"
			}
		}
	}
	if found != 1 {
		return fmt.Errorf("the module begins in %d functions, not in one", found)
	}
	return nil
}

var typeLine = regexp.MustCompile(`(?m)^FUNC_TYPE_EXTERN_T\((w2c_guest_t\d+)\) = ("[^"]*");$`)

// readTypes numbers the types. Equal types have equal hashes and share a number.
func (m *module) readTypes() error {
	numbers := map[string]int{}
	for _, unit := range m.units() {
		for _, match := range typeLine.FindAllStringSubmatch(m.files[unit], -1) {
			if len(match[2]) != 2+4*32 {
				return fmt.Errorf("%s: the type %s has no hash of 32 bytes", unit, match[1])
			}
			if numbers[match[2]] == 0 {
				numbers[match[2]] = len(numbers) + 1
			}
			m.types[match[1]] = numbers[match[2]]
		}
	}
	return nil
}

var (
	tableLine = regexp.MustCompile(
		`(?m)^  wasm_rt_allocate_funcref_table\(&instance->w2c_(\w+), (\d+), \d+\);$`)
	elementList = regexp.MustCompile(`(?s)\nconst wasm_elem_segment_expr_t \w+\[\] = \{\n(.*?)\n\};\n`)
	elementLine = regexp.MustCompile(
		`^  \{RefFunc, (w2c_guest_t\d+), \(wasm_rt_function_ptr_t\)(\w+), \{NULL\}, [^{}]*\},$`)
	elementInit = regexp.MustCompile(
		`(?m)^  funcref_table_init\(&instance->w2c_(\w+), \w+, (\d+), (\d+)u, 0, (\d+), instance\);$`)
)

// readTable reads the table's only segment, whose position is constant.
func (m *module) readTable() error {
	unit := m.files["guest_0.c"]
	if unit == "" {
		unit = m.files["guest.c"]
	}

	tables := tableLine.FindAllStringSubmatch(unit, -1)
	lists := elementList.FindAllStringSubmatch(unit, -1)
	inits := elementInit.FindAllStringSubmatch(unit, -1)
	if len(tables) == 0 && len(lists) == 0 && len(inits) == 0 {
		return nil
	}
	if len(tables) == 1 && len(lists) == 0 && len(inits) == 0 {
		m.size, _ = strconv.Atoi(tables[0][2])
		m.table = make([]tableEntry, m.size) // all entries are empty
		return nil
	}
	if len(tables) != 1 || len(lists) != 1 || len(inits) != 1 || tables[0][1] != inits[0][1] {
		return fmt.Errorf("the module has %d tables with %d segments in %d places, not one of each",
			len(tables), len(lists), len(inits))
	}

	m.size, _ = strconv.Atoi(tables[0][2])
	start, _ := strconv.Atoi(inits[0][3])
	lines := strings.Split(lists[0][1], "\n")
	if inits[0][2] != inits[0][4] || inits[0][2] != strconv.Itoa(len(lines)) || start+len(lines) > m.size {
		return fmt.Errorf("a segment of %d functions at %d does not fit a table of %d",
			len(lines), start, m.size)
	}

	m.table = make([]tableEntry, m.size)
	for i, line := range lines {
		match := elementLine.FindStringSubmatch(line)
		if len(match) == 0 || m.types[match[1]] == 0 {
			return fmt.Errorf("an entry of the table is %q", line)
		}
		m.table[start+i] = tableEntry{match[2], m.types[match[1]]}
	}
	return nil
}

// tableSource returns the table in assembly language.
func (m *module) tableSource() string {
	var s strings.Builder
	s.WriteString("\t.section .rodata\n\t.globl aot_table\n\t.hidden aot_table\n\t.balign 8\naot_table:\n")
	for _, entry := range m.table {
		if entry.kind == 0 {
			s.WriteString("\t.long 0, 0\n")
		} else {
			fmt.Fprintf(&s, "\t.long %s - aot_table, %d\n", entry.function, entry.kind)
		}
	}

	s.WriteString("\t.long 0, 0\n\t.section .note.GNU-stack,\"\",%progbits\n")
	return s.String()
}

// replace replaces a string that must occur exactly once.
func replace(text *string, from, to string) error {
	if n := strings.Count(*text, from); n != 1 {
		return fmt.Errorf("guest-impl.h has %.60q %d times, not once", from, n)
	}
	*text = strings.Replace(*text, from, to, 1)
	return nil
}

// between returns the text from the first occurrence of start up to the next occurrence of end.
func between(text, start, end string) (string, error) {
	i := strings.Index(text, start)
	if i < 0 {
		return "", fmt.Errorf("guest-impl.h has no %q", start)
	}

	j := strings.Index(text[i:], end)
	if j < 0 {
		return "", fmt.Errorf("guest-impl.h has no %q after %q", end, start)
	}
	return text[i : i+j], nil
}

const stackCheck = `#define FUNC_PROLOGUE                                                \
  if (UNLIKELY(aot_stack_pointer < aot_context(instance)->stack_limit)) \
    AOT_LOW_STACK(instance);
#define FUNC_EPILOGUE
`

const indirectCall = `#define CALL_INDIRECT(table, t, ft, x, ...)                              \
  ((LIKELY((x) < AOT_TABLE_SIZE && aot_table[x].type == ft##_AOT) ||         \
    (wasm_rt_trap((x) < AOT_TABLE_SIZE && aot_table[x].type                  \
                      ? AOT_TRAP_TYPE : WASM_RT_TRAP_CALL_INDIRECT), 0)),    \
   ((t)((uintptr_t)aot_table + (intptr_t)aot_table[x].function))(__VA_ARGS__))

`

// If a fault serves as the check, a load must not be dropped, although aot.sh tells clang that no
// memory changes.
const forcedReads = `#if AOT_FORCE_READS
#define FORCE_READ_INT(var) __asm__ volatile("" : : "r"(var))
#define FORCE_READ_FLOAT(var) __asm__ volatile("" : : AOT_FLOAT(var))
#else
#define FORCE_READ_INT(var)
#define FORCE_READ_FLOAT(var)
#endif

`

// rewriteHeader changes the macros.
func (m *module) rewriteHeader() error {
	text := m.files["guest-impl.h"]
	depth, err := between(text, "#if WASM_RT_STACK_DEPTH_COUNT\n", "#define UNREACHABLE ")
	if err != nil {
		return err
	}

	calls, err := between(text, "#define CHECK_CALL_INDIRECT(", "#ifdef SUPPORT_MEMORY64\n")
	if err != nil {
		return err
	}
	forced, err := between(text, "#ifdef __GNUC__\n#define FORCE_READ_INT", "static inline void load_data(")
	if err != nil {
		return err
	}

	var numbers strings.Builder
	fmt.Fprintf(&numbers, "#define AOT_TABLE_SIZE %d\n", m.size)
	for _, name := range slices.Sorted(maps.Keys(m.types)) {
		fmt.Fprintf(&numbers, "#define %s_AOT %d\n", name, m.types[name])
	}

	for _, change := range [][2]string{
		{"#include \"guest.h\"\n", "#include \"guest.h\"\n#include \"aot.h\"\n"},
		{
			"#define MEM_ADDR(mem, addr, n) &(mem)->data[addr]\n",
			"#define MEM_ADDR(mem, addr, n) \\\n" +
				"  ((u8*)(mem) - offsetof(w2c_guest, w2c_memory) + AOT_STATE + (u64)(addr))\n",
		},
		{depth, stackCheck + "\n"},
		{calls, numbers.String() + indirectCall},
		{forced, forcedReads},
	} {
		if err := replace(&text, change[0], change[1]); err != nil {
			return err
		}
	}
	m.files["guest-impl.h"] = text
	return nil
}

var (
	callee   = regexp.MustCompile(`instance->w2c_\w+\.data\[\w+\]\.module_instance`)
	importer = regexp.MustCompile(`\((instance->w2c_\w+_instance)([,)])`)
	leftover = regexp.MustCompile(`w2c_\w+_instance\b[^;,)]|module_instance|funcref_table`)
)

const globalsHead = "static void init_globals(w2c_guest* instance) {"

// rewriteUnits changes the functions. All of them receive the same instance.
func (m *module) rewriteUnits() error {
	starts := 0
	for _, name := range m.units() {
		text := m.files[name]
		text = typeLine.ReplaceAllString(text, "")
		text = elementList.ReplaceAllString(text, "\n")
		text = elementInit.ReplaceAllString(text, "")
		text = tableLine.ReplaceAllString(text, "")
		text = cutFunction(text, "void wasm2c_guest_instantiate(")
		text = cutFunction(text, "void wasm2c_guest_free(")
		text = cutFunction(text, "wasm_rt_func_type_t wasm2c_guest_get_func_type(")
		text = cutFunction(text, "static void init_tables(")
		text = cutFunction(text, "static void init_memories(")
		text = cutFunction(text, "static void init_elem_instances(")
		text = cutFunction(text, "static void init_instance_import(")
		starts += strings.Count(text, globalsHead)
		text = strings.Replace(text, globalsHead, "void aot_start(w2c_guest* instance) {", 1)
		text = callee.ReplaceAllString(text, "instance")
		text = importer.ReplaceAllString(text, "((void*)instance$2")
		if found := leftover.FindString(text); found != "" {
			return fmt.Errorf("%s still has %q", name, found)
		}
		m.files[name] = text
	}

	switch {
	case m.hasGlobals && starts == 1:
	case !m.hasGlobals && starts == 0:
		m.files[m.units()[0]] += "\nvoid aot_start(w2c_guest* instance) {}\n"
	default:
		return fmt.Errorf("%d functions set globals", starts)
	}
	return nil
}

// cutFunction removes the function whose definition begins with head.
func cutFunction(text, head string) string {
	i := strings.Index(text, "\n"+head)
	if i < 0 {
		return text
	}
	j := strings.Index(text[i:], "\n}\n")
	return text[:i] + text[i+j+2:]
}

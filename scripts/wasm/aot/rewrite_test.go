package main

import (
	"strings"
	"testing"
)

const hash = `"` +
	`\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f` +
	`\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f"`

// written returns the part of wasm2c's output that rewrite reads.
func written() map[string]string {
	other := strings.Replace(hash, "00", "ff", 1)
	return map[string]string{
		"guest.h": `
/* import: 'rlm' 'call' */
u64 w2c_rlm_call(struct w2c_rlm*, u32, f64);

/* export: 'memory' */
wasm_rt_memory_t* w2c_guest_memory(w2c_guest* instance);

/* export: 'fuel' */
u64* w2c_guest_fuel(w2c_guest* instance);

/* export: 'run' */
u32 w2c_guest_run(w2c_guest*, u32, u64);

/* export: 'settle' */
void w2c_guest_settle(w2c_guest*);
`,
		"guest-impl.h": `#include "guest.h"
#define MEM_ADDR(mem, addr, n) &(mem)->data[addr]
#if WASM_RT_STACK_DEPTH_COUNT
#define FUNC_PROLOGUE count
#endif
#define UNREACHABLE TRAP(UNREACHABLE)
#define CHECK_CALL_INDIRECT(table, ft, x) dynamic
#define CALL_INDIRECT(table, t, ft, x, ...) dynamic
#ifdef SUPPORT_MEMORY64
#endif
#ifdef __GNUC__
#define FORCE_READ_INT(var) forced
#endif
static inline void load_data(void* dest) {}
`,
		"guest_0.c": `#include "guest-impl.h"
FUNC_TYPE_EXTERN_T(w2c_guest_t0) = ` + hash + `;
FUNC_TYPE_EXTERN_T(w2c_guest_t1) = ` + other + `;
FUNC_TYPE_EXTERN_T(w2c_guest_t2) = ` + hash + `;

static void init_globals(w2c_guest* instance) {
  instance->w2c_fuel = 1;
}

const wasm_elem_segment_expr_t elem_segment_exprs_w2c_guest_e0[] = {
  {RefFunc, w2c_guest_t2, (wasm_rt_function_ptr_t)w2c_guest_f5, {NULL}, 0},
  {RefFunc, w2c_guest_t1, (wasm_rt_function_ptr_t)w2c_rlm_call, {NULL}, offsetof(w2c_guest, w2c_rlm_instance)},
};

static void init_tables(w2c_guest* instance) {
  wasm_rt_allocate_funcref_table(&instance->w2c_T0, 4, 4);
  funcref_table_init(&instance->w2c_T0, elem_segment_exprs_w2c_guest_e0, 2, 1u, 0, 2, instance);
}

u32 w2c_guest_run_0(w2c_guest* instance, u32 var_p0, u64 var_p1) {
  var_i0 = CALL_INDIRECT(instance->w2c_T0, u32 (*)(void*), w2c_guest_t0, var_i0, ` +
			`instance->w2c_T0.data[var_i0].module_instance);
  var_j0 = w2c_rlm_call(instance->w2c_rlm_instance, var_i0, var_d0);
}

void wasm2c_guest_instantiate(w2c_guest* instance, struct w2c_rlm* w2c_rlm_instance) {
  assert(true);
  init_instance_import(instance, w2c_rlm_instance);
  init_globals(instance);
  init_tables(instance);
#if WASM_RT_USE_SEGUE
  WASM_RT_SEGUE_WRITE_BASE(instance->w2c_memory.data);
#endif
}
`,
	}
}

func TestRewrite(t *testing.T) {
	out, err := rewrite(written())
	if err != nil {
		t.Fatal(err)
	}
	for name, texts := range map[string][]string{
		"guest-impl.h": {
			"#include \"aot.h\"\n", "+ AOT_STATE + (u64)(addr))", "aot_context(instance)->stack_limit",
			// Types with the same hash are one type.
			"#define AOT_TABLE_SIZE 4\n#define w2c_guest_t0_AOT 1\n" +
				"#define w2c_guest_t1_AOT 2\n#define w2c_guest_t2_AOT 1\n",
			"#define FORCE_READ_INT(var)\n", "#if AOT_FORCE_READS\n",
		},
		"guest_0.c": {
			"void aot_start(w2c_guest* instance) {\n  instance->w2c_fuel = 1;\n}",
			"w2c_guest_t0, var_i0, instance);", "w2c_rlm_call((void*)instance, var_i0, var_d0);",
		},
		"table.S": {
			"aot_table:\n\t.long 0, 0\n\t.long w2c_guest_f5 - aot_table, 1\n" +
				"\t.long w2c_rlm_call - aot_table, 2\n\t.long 0, 0\n",
		},
		"glue.c": {
			"u64 w2c_rlm_call(struct w2c_rlm* instance, u32 a0, f64 a1) {", "c->slots[1] = aot_of_f64(a1);",
			"aot_exit(c, 1);\n  return aot_as_u64(c->slots[0]);",
			"{ slots[0] = aot_of_u32(w2c_guest_run(instance, aot_as_u32(slots[0]), aot_as_u64(slots[1]))); }",
			"aot_export_1(w2c_guest *instance, u64 *slots) { w2c_guest_settle(instance); }",
			"offsetof(w2c_guest, w2c_fuel),\n};",
		},
		"imports.inc":    {"\"call\",\n"},
		"interface.json": {`"Params": "iF"`, `"GlobalNames": [`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range texts {
				if !strings.Contains(out[name], text) {
					t.Errorf("%s has no %q:\n%s", name, text, out[name])
				}
			}
		})
	}

	for _, gone := range []string{"module_instance", "funcref", "wasm2c_guest_instantiate", "FUNC_TYPE"} {
		if strings.Contains(out["guest_0.c"], gone) {
			t.Errorf("guest_0.c still has %s", gone)
		}
	}
}

// TestRewriteWithoutGlobalsOrEntries produces an empty start, and a table of empty entries.
func TestRewriteWithoutGlobalsOrEntries(t *testing.T) {
	files := written()
	text := files["guest_0.c"]
	for _, cut := range []string{
		"static void init_globals(w2c_guest* instance) {\n  instance->w2c_fuel = 1;\n}\n",
		"  init_globals(instance);\n",
		text[strings.Index(text, "const wasm_elem"):strings.Index(text, "static void init_tables")],
		text[strings.Index(text, "  funcref_table_init("):strings.Index(text, "}\n\nu32 w2c_guest_run_0")],
	} {
		text = strings.Replace(text, cut, "", 1)
	}
	files["guest_0.c"] = text
	out, err := rewrite(files)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out["guest_0.c"], "\nvoid aot_start(w2c_guest* instance) {}\n") {
		t.Error("nothing can begin the module")
	}
	if !strings.Contains(out["table.S"], "aot_table:\n"+strings.Repeat("\t.long 0, 0\n", 5)) {
		t.Errorf("the table is %s", out["table.S"])
	}
}

// TestRewriteRefuses checks that changes of wasm2c's output are refused. A newer version may cause
// such changes, or a module may have parts that a guest cannot have.
func TestRewriteRefuses(t *testing.T) {
	for name, change := range map[string][3]string{
		"another macro for addresses": {"guest-impl.h", "&(mem)->data[addr]", "(mem)->base + addr"},
		"another macro for calls":     {"guest-impl.h", "#define CHECK_CALL_INDIRECT(", "#define CHECK_CALL("},
		"another macro for stacks":    {"guest-impl.h", "#if WASM_RT_STACK_DEPTH_COUNT\n", "#if 1\n"},
		"another header":              {"guest-impl.h", "#include \"guest.h\"\n", ""},
		"no memory":                   {"guest.h", "w2c_guest_memory(", "w2c_guest_m("},
		"a vector":                    {"guest.h", "u32 w2c_guest_run(", "v128 w2c_guest_run("},
		"data": {
			"guest_0.c", "static void init_tables",
			"u8 data_segment_data_d0[] = {};\nstatic void init_tables",
		},
		"a table that changes": {"guest_0.c", "var_j0 = ", "funcref_table_set(&instance->w2c_T0, 1, x);\n"},
		"a second table": {
			"guest_0.c", "  funcref_table_init(",
			"  wasm_rt_allocate_funcref_table(&instance->w2c_T1, 4, 4);\n  funcref_table_init(",
		},
		"a start function":         {"guest_0.c", "  init_tables(instance);\n", "  w2c_guest_f2(instance);\n"},
		"no start":                 {"guest_0.c", "void wasm2c_guest_instantiate(", "void instantiate("},
		"globals set elsewhere":    {"guest_0.c", "static void init_globals(", "static void init_all_globals("},
		"globals never set":        {"guest_0.c", "  init_globals(instance);\n", ""},
		"a segment at a variable":  {"guest_0.c", "2, 1u, 0, 2, instance", "2, instance->w2c_g1, 0, 2, instance"},
		"a segment too long":       {"guest_0.c", "2, 1u, 0, 2, instance", "2, 3u, 0, 2, instance"},
		"an entry of another kind": {"guest_0.c", "{RefFunc, w2c_guest_t1,", "{RefNull, w2c_guest_t1,"},
		"a type without a hash":    {"guest_0.c", `\x1f"`, `"`},
		"a call in another form": {
			"guest_0.c", "instance->w2c_T0.data[var_i0].module_instance",
			"instance->w2c_T0.data[var_i0 + 1].module_instance",
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := written()
			changed := strings.Replace(files[change[0]], change[1], change[2], 1)
			if changed == files[change[0]] {
				t.Fatalf("%s changes nothing", name)
			}
			files[change[0]] = changed
			if _, err := rewrite(files); err == nil {
				t.Errorf("with %s, rewrite reports nothing", name)
			}
		})
	}
	if _, err := rewrite(map[string]string{}); err == nil {
		t.Error("rewrite takes an empty folder")
	}
}

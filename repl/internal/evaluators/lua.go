package evaluators

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// Bounds that stop a Lua program with a Lua error.
const (
	luaCalls    = 200     // nested calls
	luaRegistry = 1 << 18 // values on the stack
)

// luaLibraries holds the libraries of a program. luaRemoved holds the functions that are removed
// from them because they read files or write to streams that nothing reads.
var (
	luaLibraries = []struct {
		name string
		open lua.LGFunction
	}{
		{lua.BaseLibName, lua.OpenBase},
		{lua.TabLibName, lua.OpenTable},
		{lua.StringLibName, lua.OpenString},
		{lua.MathLibName, lua.OpenMath},
	}
	luaRemoved = []string{
		"dofile", "loadfile", "require", "module", "collectgarbage", "_printregs", "newproxy",
	}
)

// runLua runs a program: see [Jail.Lua].
func runLua(source string, variables map[string]any) (any, error) {
	l := lua.NewState(lua.Options{
		SkipOpenLibs:     true,
		CallStackSize:    luaCalls,
		RegistrySize:     1 << 10,
		RegistryMaxSize:  luaRegistry,
		RegistryGrowStep: 1 << 12,
	})

	defer l.Close()
	for _, library := range luaLibraries {
		l.Push(l.NewFunction(library.open))
		l.Push(lua.LString(library.name))
		l.Call(1, 0)
	}

	for _, name := range luaRemoved {
		l.SetGlobal(name, lua.LNil)
	}
	l.SetGlobal("print", l.NewFunction(func(*lua.LState) int { return 0 }))
	for name, value := range variables {
		l.SetGlobal(name, toLua(l, value))
	}

	program, err := l.LoadString(source)
	if err != nil {
		return nil, &ProgramError{Syntax, err.Error()}
	}
	l.Push(program)
	if err := l.PCall(0, 1, nil); err != nil {
		return nil, &ProgramError{Raised, luaMessage(err)}
	}

	result := l.Get(-1)
	if result == lua.LNil {
		result = l.GetGlobal("result")
	}
	if result == lua.LNil {
		return nil, &ProgramError{Raised, "the code neither returns a value nor sets the global result"}
	}
	return (&luaReader{counter{left: maxValues}}).value(result, 0)
}

// luaMessage returns a program's error without the interpreter's stack.
func luaMessage(err error) string {
	var raised *lua.ApiError
	if errors.As(err, &raised) && raised.Object != nil && raised.Object != lua.LNil {
		return raised.Object.String()
	}
	return err.Error()
}

// toLua converts a value to Lua: lists and objects become tables, null becomes nil.
func toLua(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return lua.LString(v)
		}
		return lua.LNumber(f)
	case []any:
		table := l.CreateTable(len(v), 0)
		for i, item := range v {
			table.RawSetInt(i+1, toLua(l, item))
		}
		return table
	case map[string]any:
		table := l.CreateTable(0, len(v))
		for key, member := range v {
			table.RawSetString(key, toLua(l, member))
		}
		return table
	}

	return lua.LNil
}

// luaReader converts a program's result to JSON.
type luaReader struct{ counter counter }

func (r *luaReader) value(v lua.LValue, depth int) (any, error) {
	if err := r.counter.take(depth); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case *lua.LNilType:
		return nil, nil //nolint:nilnil // null is a value
	case lua.LBool:
		return bool(v), nil
	case lua.LString:
		return string(v), nil
	case lua.LNumber:
		return luaNumber(float64(v))
	case *lua.LTable:
		return r.table(v, depth)
	}

	return nil, fmt.Errorf(
		"the result contains a %s, which is not a value: return tables, texts, numbers and booleans",
		v.Type(),
	)
}

// luaNumber encodes a number as JSON. Whole numbers have no fraction.
func luaNumber(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("the result contains the number %v, which JSON cannot represent", f)
	}
	const exact = 1 << 53
	if f == math.Trunc(f) && math.Abs(f) < exact {
		return int64(f), nil
	}

	return f, nil
}

// table converts a table to a list if its keys are 1 to n or if it is empty, and to an object
// otherwise.
func (r *luaReader) table(t *lua.LTable, depth int) (any, error) {
	keys := 0
	t.ForEach(func(lua.LValue, lua.LValue) { keys++ })
	if keys == t.Len() {
		list := make([]any, 0, keys)
		for i := 1; i <= keys; i++ {
			item, err := r.value(t.RawGetInt(i), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		return list, nil
	}

	object := make(map[string]any, keys)
	var failed error
	t.ForEach(func(key, member lua.LValue) {
		if failed != nil {
			return
		}
		name, err := luaKey(key)
		if err == nil {
			object[name], err = r.value(member, depth+1)
		}

		failed = err
	})

	return object, failed
}

func luaKey(key lua.LValue) (string, error) {
	switch key := key.(type) {
	case lua.LString:
		return string(key), nil
	case lua.LNumber:
		return strconv.FormatFloat(float64(key), 'g', -1, 64), nil
	}

	return "", fmt.Errorf(
		"the result contains a table with a %s as a key: use texts or numbers", key.Type(),
	)
}

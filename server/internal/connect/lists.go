package connect

import (
	"fmt"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
)

// maxList bounds the decoded elements of a list, or of a map of variables, because an element such
// as "{}" takes far more memory than its JSON. Each method has a tighter bound with a clearer
// error.
const maxList = 10_000

// list is a list of parameters.
type list[T any] []T

// UnmarshalJSONFrom implements [strict.UnmarshalerFrom].
func (l *list[T]) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	*l = nil
	if kind := from.PeekKind(); kind != '[' {
		return strict.UnmarshalDecode(from, (*[]T)(l)) // null, or of the wrong type
	}

	_, err := from.ReadToken()
	for err == nil && from.PeekKind() != ']' {
		if len(*l) == maxList {
			return fmt.Errorf("a list has more than %d elements", maxList)
		}
		var one T
		err = strict.UnmarshalDecode(from, &one)
		*l = append(*l, one)
	}
	if err == nil {
		_, err = from.ReadToken()
	}
	return err
}

// variables maps the names of variables to values.
type variables map[string]jsonrpc.Raw

// UnmarshalJSONFrom implements [strict.UnmarshalerFrom].
func (v *variables) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	*v = nil
	if kind := from.PeekKind(); kind != '{' {
		return strict.UnmarshalDecode(from, (*map[string]jsonrpc.Raw)(v))
	}

	*v = variables{}
	_, err := from.ReadToken()
	for err == nil && from.PeekKind() != '}' {
		if len(*v) == maxList {
			return fmt.Errorf("there are more than %d variables", maxList)
		}
		var name, value jsontext.Value
		if name, err = from.ReadValue(); err == nil {
			key := name.Clone()
			if value, err = from.ReadValue(); err == nil {
				err = v.add(key, value.Clone())
			}
		}
	}
	if err == nil {
		_, err = from.ReadToken()
	}
	return err
}

func (v variables) add(quoted, value jsontext.Value) error {
	var name string
	if err := strict.Unmarshal(quoted, &name); err != nil {
		return err
	}
	v[name] = value
	return nil
}

package connect

import (
	"context"
	"reflect"

	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
)

// method is a method that a client can call. Calls of begin have the order of the messages.
type method struct {
	begin          func(context.Context, *server, jsonrpc.Raw) (jsonrpc.Answer, error)
	params, result reflect.Type
}

// methods are all methods that a client can call, by name.
var methods map[string]method

func init() { //nolint:gochecknoinits // the functions of the table use the table
	methods = map[string]method{
		"initialize":        inOrder((*server).initialize),
		"session/open":      ofServer((*server).open),
		"session/close":     makeMethod((*server).close),
		"session/interrupt": inOrder((*server).interrupt),
		"session/fork":      ofSession((*server).fork),
		"session/run":       ofSession((*server).run),
		"session/set":       ofSession((*server).set),
		"session/get":       ofSession((*server).get),
		"session/variables": ofSession((*server).variables),
		"session/delete":    ofSession((*server).remove),
		"session/add":       ofSession((*server).add),
		"session/snapshot":  ofSession((*server).snapshot),
		"session/restore":   ofSession((*server).restore),
		"session/files":     ofSession((*server).files),
	}
}

// makeMethod makes a method from the function that begins a call of it.
func makeMethod[P, R any](
	begin func(*server, context.Context, *P) (func() (*R, error), error),
) method {
	decode := func(ctx context.Context, s *server, params jsonrpc.Raw) (jsonrpc.Answer, error) {
		p := new(P)
		if err := jsonrpc.Decode(params, p); err != nil {
			return nil, err
		}
		answer, err := begin(s, ctx, p)
		return func() (any, error) { return answer() }, err
	}
	return method{decode, reflect.TypeFor[P](), reflect.TypeFor[R]()}
}

// inOrder makes a method that completes before the next message is read, so it must be fast.
func inOrder[P, R any](f func(*server, context.Context, *P) (*R, error)) method {
	return makeMethod(func(s *server, ctx context.Context, p *P) (func() (*R, error), error) {
		result, err := f(s, ctx, p)
		return func() (*R, error) { return result, nil }, err
	})
}

// ofServer makes a method that needs no session.
func ofServer[P, R any](f func(*server, context.Context, *P) (*R, error)) method {
	return makeMethod(func(s *server, ctx context.Context, p *P) (func() (*R, error), error) {
		return func() (*R, error) { return f(s, ctx, p) }, nil
	})
}

// ofSession makes a method that has exclusive use of the session until its answer.
func ofSession[P interface{ id() string }, R any](
	f func(*server, context.Context, *entry, P) (*R, error),
) method {
	return makeMethod(func(s *server, ctx context.Context, p *P) (func() (*R, error), error) {
		e, err := s.find((*p).id())
		if err != nil {
			return nil, err
		}
		ctx, unclaim, err := e.claim(ctx)
		if err != nil {
			return nil, err
		}
		return func() (result *R, err error) {
			defer unclaim()
			ctx, leave, err := e.enter(ctx)
			if err != nil {
				return nil, err
			}
			defer func() {
				if failed := leave(); failed != nil {
					result, err = nil, failed
				}
			}()
			return f(s, ctx, e, *p)
		}, nil
	})
}

// ofOne names a session.
type ofOne struct {
	Session string `json:"session"`
}

func (p ofOne) id() string { return p.Session }

// none is a result without fields.
type none struct{}

package otel_test

import (
	"context"
	"fmt"

	"github.com/rlmhq/rlm/repl/otel"
)

// The code is the same if the environment turns OpenTelemetry off: New returns nil, and a nil
// observer does nothing.
func ExampleNew() {
	observer, err := otel.New(context.Background(), otel.Config{
		To:   otel.OTLP,
		Loop: "run",
		Env:  func(name string) string { return map[string]string{"OTEL_SDK_DISABLED": "true"}[name] },
	})
	fmt.Println(observer == nil, err)
	fmt.Println(observer.Close(context.Background()))
	// Output:
	// true <nil>
	// <nil>
}

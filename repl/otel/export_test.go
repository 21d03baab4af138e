package otel

import "context"

// Flush sends the finished spans, so that a test can check them before Close.
func (o *Observer) Flush(ctx context.Context) error { return o.flush(ctx) }

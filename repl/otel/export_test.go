package otel

import "context"

// Flush sends what has ended, so that a test sees it before Close.
func (o *Observer) Flush(ctx context.Context) error { return o.flush(ctx) }

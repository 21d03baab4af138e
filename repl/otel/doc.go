// Package otel exports runs as OpenTelemetry traces: one trace per run, a span for each iteration
// of its loops, and a child span for each model call.
//
//	observer, err := otel.New(ctx, otel.Config{To: otel.OTLP, Loop: "run"})
//	cfg.Progress = observer.Event
//	outcome, err := run.Run(ctx, cfg)
//	err = observer.Close(ctx)
//
// Spans are made from the events that every loop emits, so the loops do not depend on this package.
// They are exported in the background by OTLP over HTTP; a failed export is logged and never ends a
// run. Nothing is sent unless a Config names a destination, and a nil Observer does nothing.
//
// Text from a model or a snippet is hostile here, too: it is converted to valid UTF-8, truncated,
// and stripped of known secrets.
package otel

// Package otel shows runs as OpenTelemetry traces: one trace a run, a span for each
// iteration of its loops, and below it one for each model call.
//
//	observer, err := otel.New(ctx, otel.Config{To: otel.OTLP, Loop: "run"})
//	cfg.Progress = observer.Event
//	outcome, err := run.Run(ctx, cfg)
//	err = observer.Close(ctx)
//
// Spans are made of the events that every loop emits, so a loop knows nothing of
// them. They go out in the background by OTLP over HTTP; an export that fails is
// logged and never ends a run. Nothing is sent unless a Config asks for it, and a nil
// Observer does nothing.
//
// What a model or a snippet wrote is hostile here, too: texts are made UTF-8, cut to
// a bound, and freed of the secrets that are known.
package otel

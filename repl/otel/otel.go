package otel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/llm"
)

// Config configures an Observer.
type Config struct {
	// To is the destination. Empty means that [New] returns no observer.
	To Destination
	// Loop is the command of the observed loop: "run", "reflect", "reflexion", "workflow" or
	// "distill". Empty means "run". It determines the names of the spans.
	Loop string
	// Env looks up variables. Nil means an empty environment. OpenTelemetry's library reads its
	// variables from the process.
	Env func(name string) string
	// Project is Opik's project. It overrides OPIK_PROJECT_NAME.
	Project string
	// Conversation names the conversation that the runs belong to, such as a session. Empty
	// means none.
	Conversation string
	// AllowHTTP allows Opik's key to be sent unencrypted to another host.
	AllowHTTP bool
	// Secrets are removed from all exported strings, as are the exporter's keys.
	Secrets []llm.Secret
	// MaxText bounds each exported string, in characters. Zero means 4,000.
	MaxText int
	// Log receives export errors, from another goroutine. Nil drops them.
	Log func(error)
	// Version is the version of the program.
	Version string
}

const (
	// defaultText bounds a string attribute, in characters.
	defaultText = 4_000
	// defaultFlush bounds Flush and Close if their context has no deadline.
	defaultFlush = 10 * time.Second

	// maxName bounds names, in characters.
	maxName = 200
	// maxQueue bounds the spans that wait for export. Further spans are dropped, because a
	// run does not wait for its observers.
	maxQueue = 8_192
	// exportTime bounds the export of one batch with its retries.
	exportTime = 30 * time.Second
)

// Observer turns events into spans. A nil Observer does nothing. It is safe for
// concurrent use.
type Observer struct {
	cfg  Config
	root *kind
	// captured selects the messages of model calls that are exported.
	captured content
	hidden   []llm.Secret
	// The processor is shut down separately, because a provider that runs out of time leaves it
	// running.
	processor sdk.SpanProcessor
	exporter  *logged
	tracer    trace.Tracer

	mu    sync.Mutex
	loops map[string]*loop // the running loops, by node
}

// New returns an observer. It returns nil if there is no destination or the environment turns the
// export off. An error means that the configuration is invalid. Errors of the server go to Log
// later.
func New(ctx context.Context, cfg Config) (*Observer, error) {
	if cfg.Env == nil {
		cfg.Env = func(string) string { return "" }
	}
	if cfg.disabled() {
		return nil, nil //nolint:nilnil // documented: a nil Observer does nothing
	}
	if cfg.MaxText <= 0 {
		cfg.MaxText = defaultText
	}
	kind, err := findKind(cfg.Loop)
	if err != nil {
		return nil, err
	}
	if err := cfg.checkVariables(); err != nil {
		return nil, err
	}

	options, err := cfg.options()
	if err != nil {
		return nil, err
	}
	client, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("cannot export spans: %w", err)
	}

	about, err := resource.New(ctx,
		resource.WithAttributes(
			attribute.String("service.name", "rlm"),
			attribute.String("service.version", cfg.Version),
		),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, errors.Join(
			fmt.Errorf("cannot export spans: OTEL_RESOURCE_ATTRIBUTES: %w", err),
			client.Shutdown(ctx),
		)
	}

	o := &Observer{cfg: cfg, root: kind, captured: cfg.captured(), hidden: cfg.secrets(), loops: map[string]*loop{}}
	o.exporter = &logged{SpanExporter: client, report: o.report}
	o.processor = sdk.NewBatchSpanProcessor(
		o.exporter, sdk.WithMaxQueueSize(maxQueue), sdk.WithExportTimeout(exportTime),
	)
	o.tracer = sdk.NewTracerProvider(
		sdk.WithResource(about), sdk.WithSpanProcessor(o.processor),
	).Tracer("github.com/rlmhq/rlm/repl/otel", trace.WithInstrumentationVersion(cfg.Version))

	return o, nil
}

// logged is an exporter whose failures are only logged.
type logged struct {
	sdk.SpanExporter

	report func(error)
}

// ExportSpans sends spans. It returns no error, because the library would print it.
func (l *logged) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := l.SpanExporter.ExportSpans(ctx, spans); err != nil {
		l.report(fmt.Errorf("cannot export %d spans: %w", len(spans), err))
	}
	return nil
}

// report logs an error, truncated and without secrets.
func (o *Observer) report(err error) {
	if o.cfg.Log != nil {
		o.cfg.Log(errors.New(texts.Truncate(o.clean(err.Error()), 1_000)))
	}
}

// text returns a string attribute, truncated and without secrets.
func (o *Observer) text(key, text string) attribute.KeyValue {
	return attribute.String(key, texts.Truncate(o.clean(text), o.cfg.MaxText))
}

// name returns a short string without secrets, such as the name of a model.
func (o *Observer) name(text string) string { return texts.Truncate(o.clean(text), maxName) }

// flush sends the finished spans, and waits until each has been sent or has failed. It gives up at
// the context's deadline, or after 10 seconds if the context has none.
func (o *Observer) flush(ctx context.Context) error {
	if o == nil {
		return nil
	}
	ctx, cancel := addDeadline(ctx)
	defer cancel()
	if err := o.processor.ForceFlush(ctx); err != nil {
		return fmt.Errorf("cannot export all spans in time: %w", err)
	}

	return nil
}

// Close ends the open spans and sends all spans, within the time of Flush. Do not use the
// observer afterwards.
func (o *Observer) Close(ctx context.Context) error {
	if o == nil {
		return nil
	}
	o.endAll(time.Now())
	ctx, cancel := addDeadline(ctx)
	defer cancel()
	err := o.processor.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("cannot export all spans in time: %w", err)
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = errors.Join(err, o.exporter.Shutdown(stop)) // ends a hanging request
	}

	return err
}

// addDeadline returns a context that ends at the deadline of ctx, or after defaultFlush if ctx has
// none.
func addDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, defaultFlush)
}

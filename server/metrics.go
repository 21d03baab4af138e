package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/server/internal/sessions"
	"github.com/rlmhq/rlm/server/internal/workers"
)

// metrics are the metrics at /metrics. No label contains data from a client, because that would
// allow the client to fill the memory.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	runs     *prometheus.CounterVec
	lengths  *prometheus.HistogramVec
	usd      *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	calls    *prometheus.CounterVec
	unpriced *prometheus.CounterVec
	tools    *prometheus.CounterVec
	snippets *prometheus.CounterVec
	snippet  prometheus.Histogram
	lines    *prometheus.CounterVec
	disk     *prometheus.CounterVec
}

func newMetrics(version string) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}

	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: counter("rlm_http_requests_total", "Answered requests.", "route", "status"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rlm_http_request_seconds", Help: "Time from the head of a request to the end of its answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}, []string{"route"}),
		runs: counter("rlm_runs_total", "Runs that have ended.", "profile", "status"),
		lengths: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rlm_run_seconds", Help: "Time of runs, in the queue included.",
			Buckets: prometheus.ExponentialBuckets(0.25, 4, 9),
		}, []string{"profile"}),
		usd:      counter("rlm_model_usd_total", "US dollars paid for model calls with a known price.", "profile"),
		tokens:   counter("rlm_model_tokens_total", "Tokens of model calls.", "profile", "direction"),
		calls:    counter("rlm_model_calls_total", "Model calls.", "profile"),
		unpriced: counter("rlm_model_unpriced_calls_total", "Model calls whose cost is not known.", "profile"),
		tools:    counter("rlm_tool_calls_total", "Calls of tools by snippets of runs.", "profile"),
		snippets: counter("rlm_session_snippets_total", "Snippets of sessions.", "status"),
		lines: counter("rlm_connection_requests_total",
			"Answered requests within connections: of WebSockets (WS) and of MCP (mcp).", "wire", "outcome"),
		snippet: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "rlm_session_snippet_seconds", Help: "Time of snippets of sessions, with the return of the session.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 4, 11),
		}),
		disk: counter("rlm_disk_failures_total",
			"What the disk has not taken: requests that were answered by 507, and saves of sessions.", "what"),
	}

	for _, what := range []string{diskRequest, diskSession} {
		m.disk.WithLabelValues(what)
	}

	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "rlm_build_info", Help: "1, with the version as a label.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	for _, wire := range []string{"WS", "mcp"} {
		m.lines.WithLabelValues(wire, "ok") // so that it exists before the first request
	}
	m.registry.MustRegister(m.requests, m.seconds, m.runs, m.lengths, m.usd, m.tokens, m.calls, m.unpriced, m.tools,
		m.snippets, m.snippet, m.lines, m.disk, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// These operations can fail because of the disk.
const (
	diskRequest = "request"
	diskSession = "session"
)

// watch exports the load of runs and sessions.
func (m *metrics) watch(manager *runs.Manager, kept *sessions.Manager) {
	gauge := func(name, help string, read func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			return float64(read())
		})
	}

	m.registry.MustRegister(
		gauge("rlm_runs_running", "Runs and direct answers that go on.", func() int {
			running, _ := manager.Load()
			return running
		}),
		gauge("rlm_runs_queued", "Runs and direct answers that wait.", func() int {
			_, waiting := manager.Load()
			return waiting
		}),
		gauge("rlm_sessions", "Sessions, those that rest included.", func() int { all, _ := kept.Load(); return all }),
		gauge("rlm_sessions_open", "Sessions that are open.", func() int { _, open := kept.Load(); return open }),
		gauge("rlm_sessions_unsaved", "Open sessions that have changed since they were saved.", func() int {
			changed, _ := kept.Unsaved()
			return changed
		}),
		gauge("rlm_sessions_pinned", "Open sessions that cannot be saved whole.", func() int {
			_, pinned := kept.Unsaved()
			return pinned
		}))
}

// watchWorkers exports the workers of a tier.
func (m *metrics) watchWorkers(tier workers.Tier) {
	gauge := func(name, help string, read func(workers.Stats) float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			return read(tier.Stats())
		}))
	}

	gauge("rlm_workers", "Processes that run snippets of tier wasm.", func(s workers.Stats) float64 {
		return float64(s.Workers)
	})
	gauge("rlm_workers_memory_bytes", "Memory that they use.", func(s workers.Stats) float64 {
		return float64(s.Memory)
	})

	for _, cause := range workers.Causes {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rlm_workers_ended_total", Help: "Workers that have ended by themselves or had to be ended.",
			ConstLabels: prometheus.Labels{"cause": string(cause)},
		}, func() float64 { return float64(tier.Stats().Ended[cause]) }))
	}
}

// unsavable counts a failed attempt to save a session.
func (m *metrics) unsavable(isDisk bool) {
	if isDisk {
		m.disk.WithLabelValues(diskSession).Inc()
	}
}

// seen counts a request. Its route is a pattern of this program, or empty if no pattern matched.
func (m *metrics) seen(route string, status int, elapsed time.Duration) {
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if status == http.StatusInsufficientStorage {
		m.disk.WithLabelValues(diskRequest).Inc()
	}
	m.seconds.WithLabelValues(route).Observe(elapsed.Seconds())
}

// noted counts a request that was sent within a connection.
func (m *metrics) noted(wire, outcome string) { m.lines.WithLabelValues(wire, outcome).Inc() }

// ended counts a run that has ended.
func (m *metrics) ended(profile, status string, elapsed time.Duration) {
	m.runs.WithLabelValues(profile, status).Inc()
	m.lengths.WithLabelValues(profile).Observe(elapsed.Seconds())
}

// ran counts a snippet that ended in a session.
func (m *metrics) ran(status string, elapsed time.Duration) {
	m.snippets.WithLabelValues(status).Inc()
	m.snippet.Observe(elapsed.Seconds())
}

// charged counts spending. Except for rounding errors, a charge is never negative.
func (m *metrics) charged(profile string, s ledger.Spending) {
	m.calls.WithLabelValues(profile).Add(float64(max(s.Calls, 0)))
	m.tools.WithLabelValues(profile).Add(float64(max(s.ToolCalls, 0)))

	m.tokens.WithLabelValues(profile, "in").Add(float64(max(s.InputTokens, 0)))
	m.tokens.WithLabelValues(profile, "out").Add(float64(max(s.OutputTokens, 0)))
	m.usd.WithLabelValues(profile).Add(max(s.USD, 0))
	m.unpriced.WithLabelValues(profile).Add(float64(max(s.Unpriced, 0)))
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

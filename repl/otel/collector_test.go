package otel_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/otel"
)

// collectorConfig is the configuration of a collector that forwards spans.
const collectorConfig = `
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {otlp_http: {endpoint: %q, sending_queue: {enabled: false}}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}
`

// TestACollectorTakesTheSpans checks that a real OpenTelemetry Collector accepts and forwards the
// spans. The command make otelcol builds it, which takes minutes.
func TestACollectorTakesTheSpans(t *testing.T) {
	program := os.Getenv("RLM_OTELCOL")
	if program == "" {
		t.Skip("RLM_OTELCOL names no collector: run make otelcol")
	}
	r := listen(t)
	address := startCollector(t, program, r.URL)

	o, err := otel.New(t.Context(), otel.Config{
		To: otel.OTLP, Conversation: "tickets", Log: func(err error) { t.Error(err) },
		Env: environment(t, map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + address, capture: "true",
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	asked(o)
	closed(t, o)

	if len(r.spans) != 5 || r.resource["service.name"] != "rlm" {
		t.Errorf("%d spans of %v came through", len(r.spans), r.resource)
	}
	check(t, r.span(t, "chat gpt-5").Attributes, map[string]string{
		"gen_ai.request.model": "gpt-5", "gen_ai.response.id": "resp-1", "gen_ai.usage.cost": "0.5",
		"gen_ai.system_instructions": `[{"type":"text","content":"Be exact."}]`,
		"gen_ai.output.messages":     reply, "gen_ai.conversation.id": "tickets",
	})
	check(t, r.span(t, "rlm_iteration_1").Attributes, map[string]string{
		"input.value": "print(1)", "output.value": "1\ncareful\n",
	})
}

// startCollector starts a collector that sends to a receiver, and returns its address.
func startCollector(t *testing.T, program, receiver string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	config := filepath.Join(t.TempDir(), "collector.yaml")
	text := fmt.Sprintf(collectorConfig, address, receiver)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(t.Context(), program, "--config", config) //nolint:gosec // the tester's
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	for range 300 {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return address
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the collector does not listen")
	return ""
}

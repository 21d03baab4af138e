package browser_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/rlmhq/rlm/internal/machine/filelock"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/scripts/checks/browser"
	"github.com/rlmhq/rlm/viewer"
)

// viewerTraces is the folder of the recorded runs with which package viewer is also tested.
const viewerTraces = "../../../viewer/testdata"

// hostile is text that would run, or appear elsewhere, if a page did not treat it as plain text.
const hostile = `</script><script>document.title="owned"</script><img src=x onerror='document.title="owned"'>` +
	"\u202e\u2028\x1b]0;x\a${'a'}<!--<script>"

// rows is an expression for the titles of the visible rows.
const rows = `[...document.querySelectorAll('.row:not([hidden])')].sort((a, b) => a.place - b.place)` +
	`.map((r) => r.querySelector('.title').textContent)`

// The names through which other test files use the browser.
type page = browser.Page

func startBrowser(t *testing.T) *page {
	t.Helper()
	return browser.Open(t)
}

func evalString(b *page, expression string) string { return browser.Eval[string](b, expression) }

// open opens an address and waits until its run is shown.
func open(b *browser.Page, address string) {
	b.Do(chromedp.Navigate(address))
	b.Wait(`performance.getEntriesByName('shown').length > 0`)
}

// serve serves the runs of a source on loopback.
func serve(tb testing.TB, source viewer.Source) *httptest.Server {
	tb.Helper()
	server := httptest.NewUnstartedServer(nil)
	own := server.Listener.Addr().String()
	server.Config.Handler = viewer.Guard("secret", own, viewer.New(source, slog.New(slog.DiscardHandler)))
	server.Start()
	tb.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// lock locks a file in the same way as a process that writes a record.
func lock(t *testing.T, name string) (unlock func()) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := filelock.Try(f); !got || err != nil {
		t.Fatal(got, err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return func() { _ = f.Close() }
}

func serveDir(tb testing.TB, paths ...string) string {
	tb.Helper()
	files, err := viewer.FindTraces(paths...)
	if err != nil {
		tb.Fatal(err)
	}
	return serve(tb, files).URL + "/secret/"
}

func TestAPersonReadsARun(t *testing.T) {
	t.Parallel()
	b := browser.Open(t)
	open(b, serveDir(t, viewerTraces+"/record")) // the only run is opened

	if got := browser.Eval[[]string](b, rows); len(got) != 20 || got[0] != "which place?" {
		t.Errorf("rows %q", got)
	}
	active := `document.activeElement.id + ' ' + document.activeElement.getAttribute('aria-activedescendant')`
	if got := browser.Eval[string](b, active); got != "scroll row0" {
		t.Errorf("at first, %q is active", got)
	}

	b.Do(chromedp.KeyEvent("jjj")) // the first snippet
	b.Wait(`document.querySelector('#part h2').textContent === 'Snippet'`)
	b.Wait(`document.querySelectorAll('#part pre').length === 2`)
	output := browser.Eval[string](b, `document.querySelectorAll('#part pre')[1].textContent`)
	if output != "⟨1B⟩[31mboom\n" {
		t.Errorf("output %q", output)
	}
	if got := browser.Eval[string](b, `location.hash`); !strings.HasSuffix(got, "node=3") {
		t.Errorf("address %q", got)
	}
	role := `(() => { const r = document.getElementById('row3'); return [r.role, r.ariaLevel, r.ariaSelected, ` +
		`r.ariaExpanded, r.querySelector('.c-part').textContent].join('|'); })()`
	if got := browser.Eval[string](b, role); !strings.HasPrefix(got, "treeitem|3|true|true|▾❯snippet: flags = ") {
		t.Errorf("row %q", got)
	}

	b.Do(chromedp.KeyEvent("h")) // folds the row
	b.Wait(rows + `.length === 12`)
	b.Do(chromedp.KeyEvent("/"))
	if got := browser.Eval[string](b, `document.activeElement.id`); got != "search" {
		t.Errorf("after /, %q is active", got)
	}
	b.Do(chromedp.Evaluate(`document.activeElement.value = ''`, nil)) // chromedp types even what a page prevents
	b.Do(chromedp.KeyEvent("zerodivision"))
	b.Wait(`document.getElementById('hits').textContent === '1 of 1'`)
	b.Wait(`document.querySelector('.row.chosen .title')?.textContent === "1/0"`)

	b.Do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("e"))
	b.Wait(rows + `.join() === "which place?,Turn 2 · 1/0,1/0"`)
}

func TestAListLeadsToRuns(t *testing.T) {
	t.Parallel()
	b := browser.Open(t)
	b.Do(chromedp.Navigate(serveDir(t, viewerTraces)), chromedp.WaitVisible(".runlink"))
	if n := browser.Eval[int](b, `document.querySelectorAll('.runlink').length`); n != 2 {
		t.Errorf("%d runs", n)
	}

	b.Do(chromedp.Click(`//a[contains(., "journal")]`), chromedp.WaitVisible(".row"))
	b.Do(chromedp.Click("#all"), chromedp.WaitVisible(".runlink"))
	b.Do(chromedp.SendKeys("#filter", "record"))
	b.Wait(`document.querySelectorAll('.runlink').length === 1`)
}

func TestARunGrowsOnThePage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tr")
	if err := os.CopyFS(dir, os.DirFS(viewerTraces+"/record")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "events.jsonl")
	all, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	begun := strings.Join(strings.SplitAfter(string(all), "\n")[:3], "")
	if err := os.WriteFile(name, []byte(begun), 0o600); err != nil {
		t.Fatal(err)
	}

	unlock := lock(t, name)
	b := browser.Open(t)
	open(b, serveDir(t, dir))
	if got := browser.Eval[string](b, `document.getElementById('status').textContent`); got != "running" {
		t.Errorf("status %q", got)
	}
	unlock() // as if the run's process had ended
	b.Wait(`document.getElementById('status').textContent === 'interrupted'`)
	if err := os.WriteFile(name, all, 0o600); err != nil {
		t.Fatal(err)
	}
	b.Wait(`document.getElementById('status').textContent === 'answered'`)
	b.Wait(rows + `.length === 20`)
}

// TestAHostileRunIsText fills everything that a trace can contain with hostile text. No text may
// become an element or run, in a served page or in a file.
func TestAHostileRunIsText(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.html")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := viewer.Export(out, hostileRun()); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}

	b := browser.Open(t)
	b.Do(chromedp.Navigate("about:blank"))
	asFile := &url.URL{Scheme: "file", Path: file}
	for _, address := range []string{serve(t, oneRun{hostileRun()}).URL + "/secret/", asFile.String()} {
		open(b, address)
		for range 8 {
			b.Wait(`!document.querySelector('#part').textContent.includes('Loading')`)
			bad := browser.Eval[int](b, `document.querySelectorAll('img, iframe, object, embed, svg, `+
				`form:not([method=dialog]), [onerror], [onload], `+
				`body script ~ script ~ script, a[href^="javascript:"]').length`)
			title := browser.Eval[string](b, `document.title + String(window.owned)`)
			if bad != 0 || strings.HasPrefix(title, "owned") || !strings.HasSuffix(title, "undefined") {
				t.Fatalf("%d hostile elements, title %q", bad, title)
			}
			b.Do(chromedp.KeyEvent("j"))
		}

		text := browser.Eval[string](b, `document.getElementById('panes').textContent`)
		if !strings.Contains(text, "<img src=x") || strings.ContainsAny(text, "\u202e\x1b\x00") {
			t.Errorf("%.500q", text)
		}
	}
}

// hostileRun returns a run with only hostile texts, a deep tree and invalid numbers.
func hostileRun() *viewer.Run {
	var b viewer.Builder
	for _, kind := range []ledger.EventKind{
		ledger.EventRunStarted, ledger.EventTurnStarted, ledger.EventReply,
		ledger.EventCallStarted, ledger.EventCall, ledger.EventTool,
		ledger.EventRetry, ledger.EventSnippet, ledger.EventAnswer, ledger.EventKind(hostile), "__proto__",
	} {
		b.Event(&ledger.Event{
			Time: time.Now(), Kind: kind, Node: "0", Model: "a/" + hostile, Agent: hostile, Purpose: hostile,
			Text: hostile,
			Tier: hostile, Status: hostile, Error: hostile, Elapsed: -5,
		})
	}
	run := b.Run()
	run.Title, run.Status, run.Notes = hostile, hostile, []string{hostile}
	for i := range 5_000 {
		run.Nodes = append(run.Nodes, viewer.Node{
			Parent: len(run.Nodes) - 1, Kind: "toString", Title: hostile, Start: float64(i) * 1e300, Elapsed: 1e300,
			USD: -1e300,
		})
		run.Texts = append(run.Texts, nil)
	}
	return run
}

// oneRun is a source of a run that does not change.
type oneRun struct{ run *viewer.Run }

func (o oneRun) List(context.Context) ([]viewer.Item, error) {
	return []viewer.Item{{ID: hostile, Title: hostile, Status: hostile}}, nil
}

func (o oneRun) Open(context.Context, string) (*viewer.Run, error) { return o.run, nil }

func (o oneRun) Wait(context.Context, string, *viewer.Run) error { return viewer.ErrEnded }

// largeRun returns a run with about the given number of nodes. Each turn has one snippet with 8
// calls.
func largeRun(nodes int) *viewer.Run {
	var b viewer.Builder
	at := time.Now()
	tell := func(e ledger.Event) {
		at = at.Add(time.Millisecond)
		e.Time, e.Node = at, "0"
		b.Event(&e)
	}
	tell(ledger.Event{Kind: ledger.EventRunStarted, Text: "a large run"})
	for turn := 1; len(b.Run().Nodes) < nodes; turn += 100 {
		for i := turn; i < turn+100; i++ {
			tell(ledger.Event{Kind: ledger.EventTurnStarted, Turn: i})
			const reply = "I look at the next part."
			tell(ledger.Event{Kind: ledger.EventReply, Turn: i, Text: reply, Model: "openai/gpt-5"})
			for k := range 8 {
				tell(ledger.Event{
					Kind: ledger.EventCall, Turn: i, Text: fmt.Sprintf("the answer to question %d of turn %d", k, i),
					Model: "openai/gpt-5-mini", Elapsed: 3 * time.Millisecond,
					Used: &ledger.Spending{Calls: 1, InputTokens: 900, OutputTokens: 50, USD: 0.001},
				})
			}
			tell(ledger.Event{
				Kind: ledger.EventSnippet, Turn: i, Text: "xs = llm_query_batched(parts)", Tier: "wasm", Status: "ok",
			})
		}
	}
	tell(ledger.Event{Kind: ledger.EventRunEnded, Status: "answered"})
	return b.Run()
}

func TestALargeRunScrolls(t *testing.T) {
	t.Parallel()
	b := browser.Open(t)
	run := largeRun(100_000)
	open(b, serve(t, oneRun{run}).URL+"/secret/")
	b.Do(chromedp.Click("#unfold"), chromedp.Focus("#scroll"), chromedp.KeyEvent(kb.End))
	b.Wait(fmt.Sprintf(`document.querySelector('.row.chosen') && document.querySelector('.row.chosen').row >= %d`,
		len(run.Nodes)-12))
	if n := browser.Eval[int](b, `document.querySelectorAll('.row').length`); n > 100 {
		t.Errorf("%d rows are in the page for %d nodes", n, len(run.Nodes))
	}
}

// BenchmarkFirstPaint measures the time from the page's request to the frame that shows the run.
func BenchmarkFirstPaint(b *testing.B) {
	page := browser.Open(b)
	address := serve(b, oneRun{largeRun(10_000)}).URL + "/secret/"
	var sum float64
	for b.Loop() {
		page.Do(chromedp.Navigate("about:blank"))
		open(page, address)
		sum += browser.Eval[float64](page, `performance.getEntriesByName('shown')[0].startTime`)
	}
	b.ReportMetric(sum/float64(b.N), "ms/paint")
}

// scroll is an expression that scrolls by 15 rows per frame for 300 frames, and returns the frames'
// median duration.
const scroll = `new Promise((done) => {
	const box = document.getElementById('scroll'), times = [];
	let last = performance.now();
	const frame = () => {
		const now = performance.now();
		times.push(now - last);
		last = now;
		box.scrollTop += 420;
		if (times.length < 300) requestAnimationFrame(frame);
		else done(times.sort((a, b) => a - b)[150]);
	};
	requestAnimationFrame(frame);
})`

// BenchmarkScroll measures the median frame without a rate limit, so that each frame takes only as
// long as it needs.
func BenchmarkScroll(b *testing.B) {
	page := browser.Open(b,
		chromedp.Flag("disable-frame-rate-limit", true), chromedp.Flag("disable-gpu-vsync", true))
	open(page, serve(b, oneRun{largeRun(100_000)}).URL+"/secret/")
	page.Do(chromedp.Click("#unfold"))
	var sum float64
	for b.Loop() {
		page.Do(chromedp.Evaluate(`document.getElementById('scroll').scrollTop = 0`, nil))
		var median float64
		page.Do(chromedp.Evaluate(scroll, &median, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
			return p.WithAwaitPromise(true)
		}))
		sum += median
	}
	b.ReportMetric(sum/float64(b.N), "ms/frame")
}

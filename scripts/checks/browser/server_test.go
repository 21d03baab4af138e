package browser_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/scripts/checks/browser"
	"github.com/rlmhq/rlm/server"
	"github.com/rlmhq/rlm/store"
	"github.com/rlmhq/rlm/tiers"
)

type object = map[string]any

// oneModel resolves every name to a model.
type oneModel struct{ llm.Provider }

func (m oneModel) Resolve(name string) (llm.Model, error) {
	return llm.Model{Name: name, ID: name, Provider: m.Provider, Facts: llm.Facts{Window: 100_000}}, nil
}

// held is a model that blocks on a request to wait until the test releases it.
type held struct {
	llm.Provider
	asked, release chan struct{}
}

func (h *held) Complete(ctx context.Context, r llm.Request, stream func(string)) (llm.Response, error) {
	if strings.Contains(r.Messages[len(r.Messages)-1].Content, "wait") {
		h.asked <- struct{}{}
		select {
		case <-h.release:
		case <-ctx.Done():
			return llm.Response{}, context.Cause(ctx)
		}
	}
	return h.Provider.Complete(ctx, r, stream)
}

// replying returns a model whose turns have the given replies, and which repeats the last one.
// Sub-models reply with leaf.
func replying(t *testing.T, leaf string, turns ...string) llm.Provider {
	t.Helper()
	code := "NEEDS_CODE"
	rules := []scripted.Rule{
		{When: scripted.When{Purpose: "bypass"}, Reply: &code},
		{When: scripted.When{Purpose: "leaf"}, Reply: &leaf},
	}
	for i := range turns {
		rule := scripted.Rule{Reply: &turns[i]}
		if i < len(turns)-1 {
			rule.When.Said = &i
		}
		rules = append(rules, rule)
	}
	model, err := scripted.New(rules...)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// counting returns a model that counts needles in a loop of two turns.
func counting(t *testing.T) llm.Provider {
	t.Helper()
	return replying(t, "", "```repl\nprint(len(context))\n```", "```repl\nFINAL(str(context.count('needle')))\n```")
}

// growing returns a model whose run waits after its first turn, which asks a sub-model.
func growing(t *testing.T) *held {
	t.Helper()
	model := replying(t, "yes, it is", "Look.\n\n```repl\nprint('wait', llm_query('is it there?'))\n```",
		"```repl\nFINAL(str(context.count('needle')))\n```")
	return &held{model, make(chan struct{}, 100), make(chan struct{})}
}

var hay = strings.Repeat("hay needle ", 200)

// served is a server for a test, with a client of the server.
type served struct {
	*testing.T
	folder server.Folder
	web    *httptest.Server
}

// startServer starts a server on loopback. change, if set, changes its options.
func startServer(t *testing.T, model llm.Provider, change func(*server.Options)) *served {
	t.Helper()
	folder := server.Folder(t.TempDir())
	engine, err := rlm.New(rlm.Options{Store: store.Folder(folder.Store()), CacheDir: testcache.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	o := server.Options{
		Dir: folder, AtOnce: 4, Queue: 4, Sessions: 20, OpenSessions: 4,
		MaxBody: 1 << 20, MaxFile: 1 << 20, MaxContext: 1 << 20,
		Long: 1_000, Open: true, Version: "test", Profiles: []server.Profile{{Name: "default"}},
	}
	o.Profiles[0].Task.Config.Models, o.Profiles[0].Task.Config.Model = oneModel{model}, "test/any"
	if change != nil {
		change(&o)
	}
	s, err := server.New(t.Context(), engine, o)
	if err != nil {
		t.Fatal(err)
	}

	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		for _, end := range []func() error{s.Close, engine.Close} {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	})
	return &served{t, folder, web}
}

// startMailing starts a server whose snippets send a mail, which waits for a decision.
func startMailing(t *testing.T) *served {
	t.Helper()
	model := replying(t, "", "```repl\nFINAL(await mail('ann'))\n```")
	return startServer(t, model, func(o *server.Options) {
		task := &o.Profiles[0].Task
		task.Config.Bypass = -1
		task.Config.Approve = func(context.Context, tiers.Call, ledger.Spending) error {
			return fmt.Errorf("a mail: %w", repl.ErrLater)
		}
		task.Functions = []rlm.Function{rlm.Func("mail", "Sends a mail.",
			func(context.Context, tiers.Call) (tiers.Value, error) { return tiers.Value(`"sent"`), nil })}
	})
}

// key makes a key for a tenant.
func (s *served) key(name string) string {
	s.Helper()
	key := server.Key{Name: name}
	key.Scopes = append(key.Scopes, "read", "run")
	_, secret, err := s.folder.CreateKey(s.Context(), key)
	if err != nil {
		s.Fatal(err)
	}
	return secret
}

// do sends a request, which must succeed, and returns the body of its answer.
func (s *served) do(method, path, key string, body any) string {
	s.Helper()
	content := []byte(nil)
	if body != nil {
		content = []byte(quoteJSON(body))
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.web.URL+path, bytes.NewReader(content))
	if err != nil {
		s.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	got, err := s.web.Client().Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != http.StatusOK {
		s.Fatalf("%s %s: %d %s, %v", method, path, got.StatusCode, text, err)
	}
	return string(text)
}

// runToEnd starts a run, and waits for its end.
func (s *served) runToEnd() {
	s.Helper()
	made := s.do("POST", "/v1/runs", "", object{"question": "how many?", "contexts": []object{{"text": hay}}})
	s.do("GET", "/v1/runs/"+idOf(s.T, made)+"/events", "", nil)
}

// policy returns the Content-Security-Policy of the page.
func (s *served) policy() string {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.web.URL, http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	got, err := s.web.Client().Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer got.Body.Close()
	return got.Header.Get("Content-Security-Policy")
}

// idOf returns the ID in the description of a run.
func idOf(t *testing.T, described string) string {
	t.Helper()
	var run struct{ ID string }
	if err := json.Unmarshal([]byte(described), &run); err != nil || !strings.HasPrefix(run.ID, "run_") {
		t.Fatalf("%s, %v", described, err)
	}
	return run.ID
}

func quoteJSON(value any) string { data, _ := json.Marshal(value); return string(data) }

// enter opens the page and enters a key.
func enter(p *browser.Page, address, key string) {
	p.Do(chromedp.Navigate(address), chromedp.WaitVisible("#key"), chromedp.SendKeys("#key", key+"\n"))
}

func TestAPersonSeesARunOfTheServerGrow(t *testing.T) {
	model := growing(t)
	s := startServer(t, model, func(o *server.Options) { o.Open = false })
	alice, bob := s.key("alice"), s.key("bob")
	p := browser.Open(t)
	enter(p, s.web.URL, alice)
	p.Wait(`document.getElementById('items').textContent === 'There are no runs yet.'`)

	made := s.do("POST", "/v1/runs", alice, object{"question": "how many?", "contexts": []object{{"text": hay}}})
	id := idOf(t, made)
	<-model.asked                                         // wait for the second turn
	p.Do(chromedp.Reload(), chromedp.WaitVisible(".row")) // the only run is opened
	p.Wait(`document.getElementById('status').textContent === 'running'`)
	p.Wait(rows + `.includes('is it there?')`)
	close(model.release)
	p.Wait(`document.getElementById('status').textContent === 'answered'`)
	p.Wait(rows + `.some((t) => t.startsWith("FINAL("))`)
	p.Do(chromedp.Click(`//*[contains(@class, "title") and text()="is it there?"]`))
	p.Wait(`[...document.querySelectorAll('#part pre')].some((pre) => pre.textContent === 'yes, it is')`)

	p.Do(chromedp.Click("#leave"), chromedp.WaitVisible("#key"))
	if stored := browser.Eval[int](p, `sessionStorage.length + document.cookie.length`); stored != 0 {
		t.Error("the page keeps a key that it should forget")
	}
	address := s.web.URL + "/#run=" + id
	enter(p, address, bob)
	p.Wait(`document.getElementById('notes').textContent.includes('there is no run')`)
	p.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(s.web.URL))
	p.Wait(`document.getElementById('items').textContent === 'There are no runs yet.'`)
}

// TestAPersonSeesAParkedRunGoOn checks that the page needs no reload after a decision.
func TestAPersonSeesAParkedRunGoOn(t *testing.T) {
	s := startMailing(t)
	path := "/v1/runs/" + idOf(t, s.do("POST", "/v1/runs", "", object{"question": "mail her"}))
	s.do("GET", path+"/events", "", nil) // until the run waits
	p := browser.Open(t)
	p.Do(chromedp.Navigate(s.web.URL), chromedp.WaitVisible(".row")) // the only run is opened
	p.Wait(`document.getElementById('status').textContent === 'parked'`)

	var run struct {
		Waiting []struct{ ID string }
	}
	parked := s.do("GET", path, "", nil)
	if err := json.Unmarshal([]byte(parked), &run); err != nil || len(run.Waiting) != 1 {
		t.Fatalf("%s, %v", parked, err)
	}
	s.do("POST", path+"/approvals", "", object{"approval": run.Waiting[0].ID, "allow": true})
	p.Wait(`document.getElementById('status').textContent === 'answered'`)
}

func TestThePageNeedsNoKeyOnLoopback(t *testing.T) {
	s := startServer(t, counting(t), nil)
	s.runToEnd()
	p := browser.Open(t)
	p.Do(chromedp.Navigate(s.web.URL), chromedp.WaitVisible(".row")) // the only run is opened
	if got := browser.Eval[string](p, `document.getElementById('title').textContent`); got != "how many?" {
		t.Errorf("the title is %q", got)
	}
}

// foul is like [hostile], with additional elements.
const foul = `<img src=x onerror="window.owned=1"><svg onload="window.owned=1"></svg>` +
	`<script>window.owned=1</script><iframe srcdoc="<script>parent.owned=1</script>"></iframe>` +
	`"'--></style></textarea><a href="javascript:window.owned=1">[x](javascript:window.owned=1)</a>` +
	"\u202e\u2028\x1b]0;owned\x07"

// hostileModel returns a model all of whose texts are hostile: thoughts, code and output, prompts
// and answers of sub-calls, and the answer.
func hostileModel(t *testing.T) llm.Provider {
	t.Helper()
	quoted := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(quoteJSON(foul))
	asks := foul + "\n\n```repl\n# " + strings.ReplaceAll(foul, "\u2028", "") + "\n" +
		"print(" + quoted + ", llm_query(" + quoted + "))\nraise ValueError(" + quoted + ")\n```"
	return replying(t, foul, asks, "```repl\nFINAL("+quoted+")\n```")
}

// TestAHostileRunOfTheServerIsText shows a run with hostile texts that was started over the API,
// and inspects each of its rows. No text may become an element or run.
func TestAHostileRunOfTheServerIsText(t *testing.T) {
	s := startServer(t, hostileModel(t), nil)
	made := s.do("POST", "/v1/runs", "", object{"question": foul, "contexts": []object{
		{"name": foul[:80], "text": strings.Repeat(foul, 100)},
		{"name": strings.Repeat("long ", 50), "text": hay},
	}})
	s.do("GET", "/v1/runs/"+idOf(t, made)+"/events", "", nil) // until the run ends
	policy := s.policy()
	for _, part := range []string{"default-src 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy of the page is %q", policy)
		}
	}

	p := browser.Open(t)
	p.Do(chromedp.Navigate(s.web.URL), chromedp.WaitVisible(".row")) // the only run is opened
	seen := ""
	for range 12 {
		p.Wait(`!document.querySelector('#part').textContent.includes('Loading')`)
		bad := browser.Eval[int](p, `document.querySelectorAll('img, iframe, object, embed, svg, textarea, '+
			'form:not([method=dialog]), [onerror], [onload], [srcdoc], a[href^="javascript:"]').length`)
		state := browser.Eval[string](p, `document.title + ' ' + String(window.owned)`)
		if bad != 0 || strings.HasPrefix(state, "owned") || !strings.HasSuffix(state, " undefined") {
			t.Fatalf("%d hostile elements, %q", bad, state)
		}
		seen += browser.Eval[string](p, `document.getElementById('part').textContent`)
		p.Do(chromedp.KeyEvent("l"), chromedp.KeyEvent("j"))
	}
	if strings.Count(seen, "<img src=x") < 5 || strings.ContainsAny(seen, "\u202e\x1b") {
		t.Errorf("the page shows %.3000q", seen)
	}
}

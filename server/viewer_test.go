package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/rlmhq/rlm/internal/testing/browser"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/server/internal/access"
)

// growing is a model whose run waits after its first turn, which asks a sub-model.
func growing(t *testing.T) *held {
	t.Helper()
	asks := "Look.\n\n```repl\nprint('wait', llm_query('is it there?'))\n```"
	final, yes, code, first := "```repl\nFINAL(str(context.count('needle')))\n```", "yes, it is", "NEEDS_CODE", 0
	model, err := scripted.New(
		scripted.Rule{When: scripted.When{Purpose: "bypass"}, Reply: &code},
		scripted.Rule{When: scripted.When{Purpose: "leaf"}, Reply: &yes},
		scripted.Rule{When: scripted.When{Said: &first}, Reply: &asks},
		scripted.Rule{Reply: &final},
	)
	if err != nil {
		t.Fatal(err)
	}
	return newHeld(model)
}

// titles returns the titles of a run's rows.
const titles = `[...document.querySelectorAll('.row:not([hidden])')].sort((a, b) => a.place - b.place)` +
	`.map((r) => r.querySelector('.title').textContent)`

// enter opens the page and enters a key.
func enter(p *browser.Page, address, key string) {
	p.Do(chromedp.Navigate(address), chromedp.WaitVisible("#key"), chromedp.SendKeys("#key", key+"\n"))
}

func TestAPersonSeesARunOfTheServerGrow(t *testing.T) {
	model := growing(t)
	s := start(t, t.TempDir(), model, locked)
	alice, bob := s.key(access.Key{Name: "alice"}), s.key(access.Key{Name: "bob", Scopes: []access.Scope{access.Admin}})
	p := browser.Open(t)
	enter(p, s.web.URL, alice)
	p.Wait(`document.getElementById('items').textContent === 'There are no runs yet.'`)

	made := s.do("POST", "/v1/runs", alice, object{"question": "how many?", "contexts": []object{{"text": hay}}})
	id := s.text(made, "id")
	<-model.asked                                         // the second turn
	p.Do(chromedp.Reload(), chromedp.WaitVisible(".row")) // the only run is opened
	p.Wait(`document.getElementById('status').textContent === 'running'`)
	p.Wait(titles + `.includes('is it there?')`)
	close(model.release)
	p.Wait(`document.getElementById('status').textContent === 'answered'`)
	p.Wait(titles + `.some((t) => t.startsWith("FINAL("))`)
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
	s, _ := startMailing(t, t.TempDir(), "FINAL(await mail('ann'))")
	path := "/v1/runs/" + s.text(s.do("POST", "/v1/runs", "", object{"question": "mail her"}), "id")
	s.do("GET", path+"/events", "", nil) // until it waits
	p := browser.Open(t)
	p.Do(chromedp.Navigate(s.web.URL), chromedp.WaitVisible(".row")) // the only run is opened
	p.Wait(`document.getElementById('status').textContent === 'parked'`)

	var run struct {
		Waiting []struct{ ID string }
	}
	parked := s.do("GET", path, "", nil)
	if err := json.Unmarshal([]byte(parked.body), &run); err != nil || len(run.Waiting) != 1 {
		t.Fatalf("%s, %v", parked.body, err)
	}
	s.want(s.do("POST", path+"/approvals", "", object{"approval": run.Waiting[0].ID, "allow": true}), 200, "")
	p.Wait(`document.getElementById('status').textContent === 'answered'`)
}

func TestThePageNeedsNoKeyOnLoopback(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	s.runToEnd("")
	p := browser.Open(t)
	p.Do(chromedp.Navigate(s.web.URL), chromedp.WaitVisible(".row")) // the only run is opened
	if got := browser.Eval[string](p, `document.getElementById('title').textContent`); got != "how many?" {
		t.Errorf("the title is %q", got)
	}
}

// TestTheViewerShowsOneTenant requests what another tenant's page just showed.
func TestTheViewerShowsOneTenant(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	alice, bob := s.key(access.Key{Name: "alice"}), s.key(access.Key{Name: "bob", Scopes: []access.Scope{access.Admin}})
	weak := s.key(access.Key{Name: "weak", Tenant: "alice", Scopes: []access.Scope{access.Run}})
	id, path := s.runToEnd(alice)
	s.want(s.do("GET", "/", "", nil), 200, "<!DOCTYPE html>")
	s.want(s.do("GET", "/api/runs", alice, nil), 200, id)
	if got := s.do("GET", "/api/runs", bob, nil); got.status != 200 || strings.Contains(got.body, id) {
		t.Errorf("another tenant lists %d %s", got.status, got.body)
	}

	paths := []string{
		"/api/run?id=" + id, "/api/texts?node=0&id=" + id, "/api/search?text=e&id=" + id, "/api/changes?id=" + id,
	}
	for _, path := range paths {
		s.want(s.do("GET", path, alice, nil), 200, "")
		s.want(s.do("GET", path, bob, nil), 404, "there is no run")
		s.want(s.do("GET", path, weak, nil), 403, "lacks the scope read")
		s.want(s.do("GET", path, "", nil), 401, "rlm keys create")
	}
	s.want(s.do("DELETE", path, alice, nil), 204, "")
	for _, path := range paths {
		s.want(s.do("GET", path, alice, nil), 404, "there is no run")
	}
}

// hostile is text that would run, or leave its place, if a page treated it as anything but text.
const hostile = `<img src=x onerror="window.owned=1"><svg onload="window.owned=1"></svg>` +
	`<script>window.owned=1</script><iframe srcdoc="<script>parent.owned=1</script>"></iframe>` +
	`"'--></style></textarea><a href="javascript:window.owned=1">[x](javascript:window.owned=1)</a>` +
	"\u202e\u2028\x1b]0;owned\x07"

// hostileModel is a model whose every text is hostile: its thoughts, its code and its output, the
// prompts and answers of its sub-calls, and its answer.
func hostileModel(t *testing.T) llm.Provider {
	t.Helper()
	quoted := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(quote(hostile))
	asks := hostile + "\n\n```repl\n# " + strings.ReplaceAll(hostile, "\u2028", "") + "\n" +
		"print(" + quoted + ", llm_query(" + quoted + "))\nraise ValueError(" + quoted + ")\n```"
	final, leaf, code, first := "```repl\nFINAL("+quoted+")\n```", hostile, "NEEDS_CODE", 0
	model, err := scripted.New(
		scripted.Rule{When: scripted.When{Purpose: "bypass"}, Reply: &code},
		scripted.Rule{When: scripted.When{Purpose: "leaf"}, Reply: &leaf},
		scripted.Rule{When: scripted.When{Said: &first}, Reply: &asks},
		scripted.Rule{Reply: &final},
	)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// TestAHostileRunOfTheServerIsText shows a run made over the API from hostile texts, and inspects
// each of its rows. None of the texts becomes an element or runs.
func TestAHostileRunOfTheServerIsText(t *testing.T) {
	s := start(t, t.TempDir(), hostileModel(t), nil)
	made := s.do("POST", "/v1/runs", "", object{"question": hostile, "contexts": []object{
		{"name": hostile[:80], "text": strings.Repeat(hostile, 100)},
		{"name": strings.Repeat("long ", 50), "text": hay},
	}})
	s.want(made, 200, `"id":"run_`)
	s.do("GET", "/v1/runs/"+s.text(made, "id")+"/events", "", nil) // until it ends
	policy := s.do("GET", "/", "", nil).header.Get("Content-Security-Policy")
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

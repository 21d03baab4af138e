package browser_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/viewer"
)

// openLive opens a run in its second turn, in a window that is too small for its texts.
func openLive(t *testing.T) (*page, *storyRun, *shelf) {
	t.Helper()
	story := live()
	source := newShelf(story.build.Run())
	b := startBrowser(t)
	b.Do(chromedp.EmulateViewport(1200, 500))
	open(b, serve(t, source).URL+shown)
	b.Wait(`document.getElementById('part').textContent.includes('llm_query_batched')`)
	return b, story, source
}

const (
	isAtEnd = `(() => { const p = document.getElementById('part'); ` +
		`return p.scrollTop > 0 && p.scrollTop + p.clientHeight >= p.scrollHeight - 8 })()`
	partText = `document.getElementById('part').textContent`
)

func TestThePartFollowsARunThatGoesOn(t *testing.T) {
	t.Parallel()
	b, story, source := openLive(t)
	b.Wait(isAtEnd)

	story.end(7, calls)
	story.run(codes[1], "the second output\n")
	source.set(story.build.Run())
	b.Wait(partText + `.includes('the second output') && ` + isAtEnd)

	story.reply(texts[2], codes[2])
	source.set(story.build.Run())
	b.Wait(partText + `.includes('min(causes') && ` + isAtEnd)
	if got := evalString(b, `document.querySelector('.row.chosen').id`); got != "row0" {
		t.Errorf("row %q is chosen", got)
	}
}

// TestAReaderKeepsThePlace checks that the page does not scroll while a reader looks at the first
// code of an active run.
func TestAReaderKeepsThePlace(t *testing.T) {
	t.Parallel()
	b, story, source := openLive(t)
	b.Wait(isAtEnd)
	b.Do(chromedp.Evaluate(`document.querySelector('#part pre.code').focus(); getSelection().selectAllChildren(
		document.activeElement); document.getElementById('part').scrollTop = 40`, nil))
	reads := `[document.activeElement.getBoundingClientRect().top, document.activeElement.textContent.slice(0, 14),
		String(getSelection()).slice(0, 14), document.getElementById('scroll').scrollTop].join()`
	before := evalString(b, reads)
	if !strings.Contains(before, ",paths = sorted,paths = sorted,") {
		t.Fatalf("the reader is at %q", before)
	}

	story.rest()
	source.set(story.build.Run())
	b.Wait(partText + `.includes('FINAL(') && document.getElementById('status').textContent === 'answered'`)
	if after := evalString(b, reads); after != before {
		t.Errorf("the reader was at %q, and is at %q", before, after)
	}
}

// TestTheLastRowIsFollowed checks that a reader at the end of the tree stays at the end.
func TestTheLastRowIsFollowed(t *testing.T) {
	t.Parallel()
	b, story, source := openLive(t)
	b.Do(chromedp.KeyEvent(kb.End))
	b.Wait(`document.querySelector('.row.chosen .title').textContent.startsWith('18 calls: 7 ok')`)

	story.rest()
	source.set(story.build.Run())
	b.Wait(`document.querySelector('.row.chosen .title').textContent.startsWith('orders, billing and mail failed')`)
	b.Wait(`document.getElementById('part').textContent.startsWith('Answer')`)
}

func TestElapsedTimeIsUpdated(t *testing.T) {
	t.Parallel()
	b, story, source := openLive(t)
	for _, time := range []string{
		`[...document.querySelectorAll('#sums div')].find((d) => d.textContent.startsWith('time')).textContent`,
		`document.querySelector('#row0 .c-time').textContent`,
		`[...document.querySelectorAll('.facts div')].find((d) => d.textContent.startsWith('time so far')).textContent`,
	} {
		first := evalString(b, time)
		if !strings.Contains(first, "1 min") {
			t.Errorf("the time is %q", first)
		}
		b.Wait(time + ` !== '` + first + `'`)
	}

	story.rest()
	source.set(story.build.Run())
	b.Wait(`document.getElementById('status').textContent === 'answered'`)
	b.Wait(`document.querySelector('#row0 .c-time').textContent === '29.0 s'`)
}

// TestAnUnknownPriceIsNoProblem checks that a call without a known price is not shown as a problem.
func TestAnUnknownPriceIsNoProblem(t *testing.T) {
	t.Parallel()
	s := newStory(time.Now().Add(-time.Hour))
	s.first()
	s.end(7, calls-1)
	b := startBrowser(t)
	open(b, serve(t, newShelf(s.build.Run())).URL+shown)
	b.Wait(`document.querySelector('.row.k-note')?.textContent.includes('price of ollama/qwen3 is unknown')`)
	b.Wait(`!document.querySelector('.problem, .s-bad')`)
	if sums := evalString(b, `document.getElementById('sums').textContent`); strings.Contains(sums, "problem") {
		t.Errorf("sums %q", sums)
	}
	b.Wait(`[...document.querySelectorAll('.c-usd')].some((c) => c.textContent === 'unknown')`)

	// Other warnings must be shown as problems.
	s.tell(0, ledger.Event{Kind: ledger.EventWarning, Error: "something else"})
	open(b, serve(t, newShelf(s.build.Run())).URL+shown)
	b.Wait(`document.querySelector('.row.problem')?.textContent.includes('something else')`)
}

func TestATurnShowsItsCode(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	open(b, serve(t, newShelf(over())).URL+shown+"&node=5")
	b.Wait(`document.querySelector('#part h2').textContent === 'Turn'`)
	b.Wait(`document.querySelectorAll('#part pre').length === 3`)
	got := evalString(b, `[...document.querySelectorAll('#part pre')].map((p) => p.textContent).join('|')`)
	output := strings.Repeat("The pool of connections was exhausted at 02:10.\n", 4)
	want := strings.Join([]string{texts[1], codes[1], output}, "|")
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	isVisible := `document.querySelector('#part pre.code').getBoundingClientRect().bottom < innerHeight`
	b.Wait(isVisible)

	b.Do(chromedp.Click(`//div[h3="code"]/button[text()="Open"]`))
	b.Wait(`document.querySelector('#part h2').textContent === 'Snippet'`)
	b.Wait(`document.querySelector('.row.chosen').row === 7`)
}

// TestALongRunShowsItsLastTurns checks the bound on what the row of a loop shows.
func TestALongRunShowsItsLastTurns(t *testing.T) {
	t.Parallel()
	s := newStory(time.Now().Add(-time.Hour))
	long := strings.Repeat("é", 60_000)
	for range 99 {
		s.reply("next", "x = 1")
		s.run("x = 1", "one")
	}
	s.reply("the last one", "print(y)")
	s.run("print(y)", long)
	b := startBrowser(t)
	open(b, serve(t, newShelf(s.build.Run())).URL+shown)
	b.Wait(partText + `.includes('Turn 100') && !` + partText + `.includes('Turn 20 ')`)
	b.Wait(partText + `.includes('Earlier parts are in the tree.')`)
	b.Wait(`[...document.querySelectorAll('.textbar')].at(-1).textContent.includes('more than 24 Ki characters')`)

	b.Do(chromedp.Evaluate(`[...document.querySelectorAll('.textbar button')].at(-2).click()`, nil))
	b.Wait(`[...document.querySelectorAll('.textbar')].at(-1)?.textContent.includes('59 Ki characters')`)
}

func TestAListIsOperatedByKeys(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	b.Do(chromedp.Navigate(serve(t, newShelf(over(), otherRuns()...)).URL + listed))
	at := func(want string) {
		t.Helper()
		b.Wait(`(document.activeElement.id || document.activeElement.textContent) === '` + want + `'`)
	}
	at("outage")
	for _, step := range []struct{ key, want string }{
		{kb.ArrowDown, "ask-20261127-091502-7k2mqx"},
		{"j", "review"},
		{"k", "ask-20261127-091502-7k2mqx"},
		{kb.End, "ask-20261126-160933-x5tzba"},
		{kb.ArrowDown, "ask-20261126-160933-x5tzba"},
		{kb.Home, "outage"},
		{kb.ArrowUp, "filter"},
		{kb.ArrowDown, "outage"},
	} {
		b.Do(chromedp.KeyEvent(step.key))
		at(step.want)
	}

	b.Do(chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent("minutes"))
	b.Wait(`document.querySelectorAll('.runlink').length === 1`)
	b.Do(chromedp.KeyEvent(kb.Escape))
	b.Wait(`document.querySelectorAll('.runlink').length === 5`)
	at("outage")

	b.Do(chromedp.KeyEvent("?"))
	b.Wait(`document.getElementById('keys').open`)
	b.Do(chromedp.KeyEvent(kb.Escape))
	b.Wait(`!document.getElementById('keys').open`)

	b.Do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.Enter))
	b.Wait(`document.activeElement.id === 'scroll' && document.querySelector('.row.chosen')`)
	b.Do(chromedp.KeyEvent("a")) // back to the run's position in the list
	at("outage")
}

func TestAnEmptyListSaysWhatFillsIt(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	for _, c := range []struct {
		source viewer.Source
		want   string
	}{
		{viewer.Join(noRuns{}), "There are no runs yet."},
		{viewer.Join(&viewer.Stored{Store: storeOf(t)}), `No run is stored yet. "rlm ask" keeps its last 20 runs`},
	} {
		b.Do(chromedp.Navigate(serve(t, c.source).URL+listed), chromedp.WaitVisible("#items td"))
		if got := evalString(b, `document.getElementById('items').textContent`); !strings.HasPrefix(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// noRuns is a source without runs.
type noRuns struct{ viewer.Source }

func (noRuns) List(context.Context) ([]viewer.Item, error) { return nil, nil }

// storeOf returns an empty store.
func storeOf(t *testing.T) viewer.Store {
	t.Helper()
	s, err := sqlitestore.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestEveryControlIsReached visits the controls of a run's page with the Tab key. Each control must
// show that it has the focus.
func TestEveryControlIsReached(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	open(b, serve(t, newShelf(over(), otherRuns()...)).URL+shown+"&node=5")
	b.Wait(`document.querySelectorAll('#part pre').length === 3`)
	const controls = `[...document.querySelectorAll('a[href], button, input, select, [tabindex="0"]')]
		.filter((e) => e.checkVisibility())`
	b.Do(chromedp.Evaluate(`window.missed = new Set(`+controls+`); window.unseen = [];
		document.addEventListener('focusin', (e) => {
			missed.delete(e.target);
			const seen = (s) => s && (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1);
			const styles = [e.target, e.target.parentElement, e.target.querySelector('.chosen')]
				.map((x) => x && getComputedStyle(x));
			if (!styles.some(seen) && e.target.id !== 'divider') unseen.push(e.target.outerHTML.slice(0, 80));
		})`, nil))
	b.Do(chromedp.Evaluate(`document.activeElement.blur()`, nil))
	for range 40 {
		b.Do(chromedp.KeyEvent(kb.Tab))
	}
	if missed := evalString(b, `[...missed].map((e) => e.outerHTML.slice(0, 80)).join('\n')`); missed != "" {
		t.Errorf("Tab does not reach\n%s", missed)
	}
	if unseen := evalString(b, `[...new Set(unseen)].join('\n')`); unseen != "" {
		t.Errorf("these do not show the focus:\n%s", unseen)
	}
}

func TestControlsAreOperatedByKeys(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	open(b, serve(t, newShelf(over(), otherRuns()...)).URL+shown)

	// The arrow keys move along the strip from call to call.
	b.Do(chromedp.Focus("#parallel"), chromedp.KeyEvent(kb.ArrowRight))
	b.Wait(`document.querySelector('.row.chosen').row === 3`)
	b.Do(chromedp.KeyEvent(kb.End))
	b.Wait(`document.getElementById('parallel').getAttribute('aria-valuetext').startsWith('call 22 of 22')`)
	b.Do(chromedp.KeyEvent(kb.ArrowLeft))
	b.Wait(`document.getElementById('parallel').getAttribute('aria-valuetext').startsWith('call 21 of 22')`)

	// The arrow keys move the divider.
	b.Do(chromedp.Focus("#divider"), chromedp.KeyEvent(kb.ArrowRight))
	b.Wait(`document.getElementById('divider').getAttribute('aria-valuenow') === '61'`)
	b.Do(chromedp.KeyEvent(kb.Home))
	b.Wait(`document.getElementById('divider').getAttribute('aria-valuenow') === '20'`)

	// Enter leads to the texts, where arrows scroll, and Escape leads back.
	b.Do(chromedp.Focus("#scroll"), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.Enter))
	b.Wait(`document.activeElement.id === 'part' && document.querySelectorAll('#part pre').length > 6`)
	b.Do(chromedp.KeyEvent(kb.PageDown))
	b.Wait(`document.getElementById('part').scrollTop > 0`)
	b.Do(chromedp.KeyEvent(kb.Escape))
	b.Wait(`document.activeElement.id === 'scroll'`)

	// Keys fold rows, and change the checkbox.
	b.Do(chromedp.KeyEvent(kb.ArrowLeft))
	b.Wait(rows + `.length === 1`)
	b.Do(chromedp.KeyEvent(kb.ArrowRight))
	b.Wait(rows + `.length > 10`)
	b.Do(chromedp.Focus("#errors"), chromedp.KeyEvent(" "))
	b.Wait(`document.getElementById('errors').checked`)
	b.Wait(rows + `.length < 6`)
}

package browser_test

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/rlmhq/rlm/scripts/checks/browser"
	"github.com/rlmhq/rlm/viewer"
)

// changed is a source of a run that is replaced once with another run.
type changed struct {
	from, to *viewer.Run
	isOther  chan struct{} // closed when the run is replaced
}

func (c *changed) List(ctx context.Context) ([]viewer.Item, error) {
	run, err := c.Open(ctx, "a")
	return []viewer.Item{{ID: "a", Status: run.Status}}, err
}

func (c *changed) Open(context.Context, string) (*viewer.Run, error) {
	run := *c.from
	select {
	case <-c.isOther:
		run = *c.to
	default:
	}
	return &run, nil
}

func (c *changed) Wait(ctx context.Context, _ string, run *viewer.Run) error {
	if run.Status != viewer.StatusRunning {
		return viewer.ErrEnded
	}
	select {
	case <-c.isOther:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TestTheChosenRowMayDisappear checks a chosen row that disappears, which is possible because the
// record of a turn has different parts from the turn's steps.
func TestTheChosenRowMayDisappear(t *testing.T) {
	t.Parallel()
	all := largeRun(10)
	all.Nodes, all.Texts, all.Status = all.Nodes[:8], all.Texts[:8], viewer.StatusRunning
	fewer := *all
	fewer.Nodes, fewer.Texts, fewer.Status = all.Nodes[:3], all.Texts[:3], "answered"
	s := &changed{all, &fewer, make(chan struct{})}
	b := browser.Open(t)
	open(b, serve(t, s).URL+"/secret/")
	b.Do(chromedp.Focus("#scroll"), chromedp.KeyEvent(kb.End))
	b.Wait(`document.querySelector('.row.chosen').row === 7`)
	close(s.isOther)
	b.Wait(`document.getElementById('status').textContent === 'answered'`)
	b.Wait(rows + `.length === 3`)
	b.Wait(`document.querySelector('.row.chosen').row === 2`)
	b.Wait(`location.hash.endsWith('node=2')`)
}

func TestAListShowsThatARunHasEnded(t *testing.T) {
	t.Parallel()
	run := largeRun(10)
	other := *run
	run.Status, other.Status = viewer.StatusRunning, "answered"
	s := &changed{run, &other, make(chan struct{})}
	b := browser.Open(t)
	open(b, serve(t, s).URL+"/secret/")
	b.Do(chromedp.Click("#all"), chromedp.WaitVisible(".runlink"), chromedp.Focus(".runlink"))
	b.Wait(`document.querySelector('#items .status').textContent === 'running'`)
	close(s.isOther)
	b.Wait(`document.querySelector('#items .status').textContent === 'answered'`)
	b.Wait(`document.activeElement === document.querySelector('.runlink')`)
}

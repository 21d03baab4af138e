package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/rlmhq/rlm/scripts/checks/browser"
)

// TestAWaitSurvivesAChangeOfPages checks a wait during which the page redirects to another page.
func TestAWaitSurvivesAChangeOfPages(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		text := "<script>there = true</script>"
		if r.URL.Path == "/" {
			text = "<script>setTimeout(() => { location.href = '/there'; }, 300)</script>"
		}
		_, _ = fmt.Fprint(w, text)
	}))
	p := browser.Open(t)
	t.Cleanup(server.Close)
	for range 3 {
		p.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(server.URL))
		p.Wait(`typeof there !== 'undefined'`)
	}
}

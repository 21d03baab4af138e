package browser_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/rlmhq/rlm/viewer"
)

// pictures is the folder for the screenshots in docs.
var pictures = flag.String("pictures", "", "folder for the screenshots of TestPictures")

// needsKey starts a server that requires a key before it shows runs.
func needsKey(t *testing.T) *httptest.Server {
	t.Helper()
	pages := viewer.New(newShelf(newStory(time.Now()).build.Run()), slog.New(slog.DiscardHandler))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			http.Error(w, "a key is needed", http.StatusUnauthorized)
			return
		}
		pages.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// look sets the size and the colour scheme of the page.
func look(b *page, isMobile, isDark bool) {
	width, height := int64(1360), int64(760)
	if isMobile {
		width, height = 390, 780
	}
	scheme := "light"
	if isDark {
		scheme = "dark"
	}
	media := emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	})
	b.Do(chromedp.EmulateViewport(width, height), media)
}

// TestNoBarriers checks all pages with axe-core, which make axe installs.
func TestNoBarriers(t *testing.T) {
	t.Parallel()
	name := os.Getenv("RLM_AXE")
	if name == "" {
		t.Skip("RLM_AXE does not name the script of axe-core: make axe runs it")
	}
	axe, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}

	list := serve(t, newShelf(over(), otherRuns()...)).URL + listed
	ended := serve(t, newShelf(over(), otherRuns()...)).URL + shown
	active := serve(t, newShelf(live().build.Run(), otherRuns()...)).URL + shown
	b := startBrowser(t)
	for _, c := range []struct {
		name, address, ready string
		keys                 string
	}{
		{"list", list, `document.querySelector('.runlink')`, ""},
		{"run that has ended", ended, `document.querySelectorAll('#part pre').length > 6`, ""},
		{"part with code", ended + "&node=4", `document.querySelectorAll('#part pre').length === 2`, ""},
		{"problems only, with hits", ended, `document.querySelector('.row')`, "e"},
		{"tree of calls", ended, `document.querySelector('.row')`, kb.End},
		{"run that goes on", active, `document.querySelectorAll('#part pre').length > 3`, ""},
		{"list of keys", ended, `document.querySelector('.row')`, "?"},
		{"key", needsKey(t).URL, `document.getElementById('key')`, ""},
	} {
		for _, isMobile := range []bool{false, true} {
			for _, isDark := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, mobile %t, dark %t", c.name, isMobile, isDark), func(t *testing.T) {
					look(b, isMobile, isDark)
					b.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(c.address))
					b.Wait(c.ready)
					b.Do(chromedp.KeyEvent(c.keys))
					findBarriers(t, b, string(axe))
				})
			}
		}
	}
}

// findBarriers fails the test for each barrier that is serious or critical.
func findBarriers(t *testing.T, b *page, axe string) {
	t.Helper()
	const run = `axe.run(document, {resultTypes: ['violations']}).then((r) => { window.axeResult = JSON.stringify({
		passes: r.passes.length, violations: r.violations.map((v) => ({id: v.id, impact: v.impact,
			nodes: v.nodes.map((n) => n.html + ' ' + n.failureSummary)}))}); }), undefined`
	b.Do(chromedp.Evaluate(axe+"; undefined", nil), chromedp.Evaluate(run, nil))
	b.Wait(`window.axeResult`)

	var found struct {
		Passes     int
		Violations []struct {
			ID, Impact string
			Nodes      []string
		}
	}
	if err := json.Unmarshal([]byte(evalString(b, `window.axeResult`)), &found); err != nil {
		t.Fatal(err)
	}
	if found.Passes < 10 {
		t.Errorf("axe-core has checked almost nothing: %d rules pass", found.Passes)
	}
	for _, v := range found.Violations {
		report := t.Logf
		if v.Impact == "critical" || v.Impact == "serious" {
			report = t.Errorf
		}
		report("%s: %s: %.600q", v.Impact, v.ID, v.Nodes)
	}
}

// shrink returns a picture as PNG, with fewer colours, so that a reader does not see the
// difference.
func shrink(t *testing.T, picture image.Image) []byte {
	t.Helper()
	bounds := picture.Bounds()
	small := image.NewRGBA(bounds)
	round := func(v uint32) uint8 { return uint8((v>>8*31 + 127) / 255 * 255 / 31) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b, _ := picture.At(x, y).RGBA()
			small.SetRGBA(x, y, color.RGBA{round(r), round(g), round(b), 255})
		}
	}

	var data bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&data, small); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// TestPictures takes the screenshots in docs.
func TestPictures(t *testing.T) {
	t.Parallel()
	dir := *pictures
	if dir == "" {
		dir = t.TempDir()
	}
	ended := serve(t, newShelf(over(), otherRuns()...)).URL
	active := serve(t, newShelf(live().build.Run(), otherRuns()...)).URL
	b := startBrowser(t)
	for _, c := range []struct {
		name, address, ready string
		isMobile, isDark     bool
	}{
		{"viewer-list", active + listed, `document.querySelectorAll('.runlink').length === 5`, false, false},
		{"viewer", ended + shown + "&node=5", `document.querySelectorAll('#part pre').length > 2`, false, false},
		{"viewer-live", active + shown, `document.querySelectorAll('#part pre').length > 3`, false, false},
		{"viewer-mobile", ended + shown + "&node=5", `document.querySelectorAll('#part pre').length > 2`, true, false},
		{"viewer-dark", ended + shown + "&node=5", `document.querySelectorAll('#part pre').length > 2`, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			look(b, c.isMobile, c.isDark)
			b.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(c.address))
			b.Wait(c.ready)
			var data []byte
			b.Do(chromedp.CaptureScreenshot(&data))
			picture, err := png.Decode(bytes.NewReader(data))
			if err != nil || (picture.Bounds().Dx() == 390) != c.isMobile {
				t.Fatal(picture.Bounds(), err)
			}
			data = shrink(t, picture)
			const most = 150 << 10
			if len(data) > most {
				t.Errorf("the picture has %d bytes, more than %d", len(data), most)
			}
			if err := os.WriteFile(filepath.Join(dir, c.name+".png"), data, 0o644); err != nil {
				t.Error(err)
			}
		})
	}
}

package viewer

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// Token returns a text that nobody guesses.
func Token() string { return rand.Text() }

// Guard lets only the browser through that has the whole address of a viewer on this machine:
// http://ADDRESS/TOKEN/. Others on the machine do not know the token. Other pages in the same
// browser, which may reach the server by a name of their own, are told apart by Host and Origin.
func Guard(token, address string, viewer http.Handler) http.Handler {
	inside := http.StripPrefix("/"+token, viewer)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case !isOurs(r.Host, address), !isOwnOrigin(r, address):
			http.Error(w, "this address is not for that page", http.StatusForbidden)
		case subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1:
			http.Error(w, "use the whole address that the program has printed", http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "nothing can be changed here", http.StatusMethodNotAllowed)
		default:
			inside.ServeHTTP(w, r)
		}
	})
}

// isOurs reports whether a host is the address that the server listens on.
func isOurs(host, address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && (host == address || host == net.JoinHostPort("localhost", port))
}

// isOwnOrigin reports whether a request comes from the viewer's own page, or from no page.
func isOwnOrigin(r *http.Request, address string) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		// A link may lead here, but no other page may load what is here.
		return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	}

	origin := r.Header.Get("Origin")
	host, isHTTP := strings.CutPrefix(origin, "http://")
	return origin == "" || isHTTP && isOurs(host, address)
}

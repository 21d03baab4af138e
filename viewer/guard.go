package viewer

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// Token returns an unguessable string.
func Token() string { return rand.Text() }

// Guard admits only a browser that has the whole address of a viewer on this machine, which is
// http://ADDRESS/TOKEN/. Other users of the machine do not know the token. Host and Origin exclude
// other pages in the same browser, which may reach the server by their own host name.
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

// isOurs reports whether a host is the server's listening address.
func isOurs(host, address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && (host == address || host == net.JoinHostPort("localhost", port))
}

// isOwnOrigin reports whether the viewer's own page sent a request, or no page did.
func isOwnOrigin(r *http.Request, address string) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		// A link may lead here, but no other page may load these resources.
		return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	}

	origin := r.Header.Get("Origin")
	host, isHTTP := strings.CutPrefix(origin, "http://")
	return origin == "" || isHTTP && isOurs(host, address)
}

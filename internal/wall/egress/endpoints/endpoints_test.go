package endpoints

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestEndpoints(t *testing.T) {
	for text, want := range map[string]string{
		"example.com:443": "example.com:443", "EXAMPLE.com.:80": "example.com:80",
		"xn--nxasmq6b.example:1": "xn--nxasmq6b.example:1",
		"a_b.example.com:65535":  "a_b.example.com:65535",
	} {
		t.Run(text, func(t *testing.T) {
			if e, err := Parse(text); err != nil || e.String() != want {
				t.Errorf("%s: %v %v", text, e, err)
			}
		})
	}

	for _, text := range []string{
		"", ":", "example.com", "example.com:", ":443", "example.com:0", "example.com:65536",
		"example.com:-1", "example.com:+1", "example.com:0443",
		"1.2.3.4:80", "[::1]:80", "::1:80", "localhost:80", "printer.local:80",
		"metadata.google.internal:80", "1.0.0.127.in-addr.arpa:80", "intranet:80",
		"*.example.com:443", "exa mple.com:1", "ex\u00e4mple.com:1", "-a.example:1", "a-.example:1",
		"a..example:1", "0x7f.1:80", "2130706433:80",
		"example.com:443:443", "http://example.com:443", "user@example.com:443",
		strings.Repeat("a", 64) + ".com:1", strings.Repeat("a.", 127) + "com:1",
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			if e, err := Parse(text); err == nil {
				t.Errorf("%q was read as %v", text, e)
			}
		})
	}
}

func FuzzParseEndpoint(f *testing.F) {
	for _, text := range []string{
		"example.com:443", "0x7f.1:80", "[::1]:80", "a.b.c:1", "xn--a.b:2", "127.1:80",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			return
		}

		if again, err := Parse(e.String()); err != nil || again != e {
			t.Fatalf("%q: %v is not canonical: %v %v", text, e, again, err)
		}
		if _, err := netip.ParseAddr(e.Host); err == nil || net.ParseIP(e.Host) != nil {
			t.Fatalf("%q is an address", text)
		}
	})
}

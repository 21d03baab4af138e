// Package egress is the one way from a sandbox to the network: an HTTP proxy that
// the host owns and that lets through what a list of endpoints names.
//
// The sandbox has no network of its own. It reaches the proxy over a private
// connection, so that there is nothing to find on the host for anybody else.
// Names are resolved here, never in the sandbox; an address that is not public is
// refused whatever the name was, and the connection goes to the very address that
// was checked. The proxy does not look into TLS: a listed host that serves others
// by the name inside of TLS can be used to reach them.
package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Endpoint is a host and a port that may be reached.
type Endpoint struct {
	// Host is a name in canonical form: ASCII in lower case, without a final dot.
	Host string
	Port uint16
}

// String is HOST:PORT.
func (e Endpoint) String() string { return e.Host + ":" + strconv.Itoa(int(e.Port)) }

// ParseEndpoints reads a list of HOST:PORT.
func ParseEndpoints(texts []string) ([]Endpoint, error) {
	list := make([]Endpoint, len(texts))
	for i, text := range texts {
		var err error
		if list[i], err = ParseEndpoint(text); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// ParseEndpoint reads HOST:PORT, as a person writes it. A name beyond ASCII has to
// be given in its xn-- form, and an address is refused: what is meant is a service,
// and a listed name must not stand for the host's own network.
func ParseEndpoint(text string) (Endpoint, error) {
	e, err := parse(text)
	if err != nil {
		return Endpoint{}, fmt.Errorf("%q is no HOST:PORT: %w", text, err)
	}
	return e, nil
}

// maxHost is how long a name may be, by RFC 1035.
const maxHost = 253

func parse(text string) (Endpoint, error) {
	host, port, ok := strings.Cut(text, ":")
	if !ok {
		return Endpoint{}, errors.New("it has no port, as in example.com:443")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] == '0' || port[0] == '+' {
		return Endpoint{}, errors.New("its port is not a number from 1 to 65535")
	}
	host, err = canonical(host)
	return Endpoint{host, uint16(n)}, err
}

// canonical is the one spelling of a name. It refuses what a resolver might take
// for an address in an unusual form, such as 0x7f.1.
func canonical(host string) (string, error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || len(host) > maxHost {
		return "", errors.New("its name is empty or too long")
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return "", errors.New("it is no host name")
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return "", errors.New("its name has characters other than a-z, 0-9 and '-' (give names of other scripts in their xn-- form)")
			}
		}
	}
	if last := labels[len(labels)-1]; last[0] >= '0' && last[0] <= '9' {
		return "", errors.New("addresses cannot be listed, only names")
	}
	if len(labels) == 1 || slices.Contains([]string{"localhost", "local", "internal", "arpa"}, labels[len(labels)-1]) {
		return "", errors.New("it is a name of the local network")
	}
	return host, nil
}

// Certificates is where a guest finds the certificates of authorities.
const Certificates = "/etc/ssl/certs/ca-certificates.crt"

// Environment is what makes a guest's libraries use a proxy on that port of its
// own 127.0.0.1.
func Environment(port int) []string {
	proxy := fmt.Sprintf("http://127.0.0.1:%d", port)
	env := []string{"NO_PROXY=", "no_proxy=", "SSL_CERT_FILE=" + Certificates, "REQUESTS_CA_BUNDLE=" + Certificates}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		env = append(env, name+"="+proxy)
	}
	return env
}

// HostCertificates is where this host has the certificates of authorities, empty
// if it has none in a usual place.
func HostCertificates() string {
	for _, path := range []string{Certificates, "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"} {
		if file, err := filepath.EvalSymlinks(path); err == nil {
			return file
		}
	}
	return ""
}

// special are addresses that look public and are not, or that carry another
// address inside: RFC 6890 and its registries, and the metadata services of clouds
// that use public addresses.
var special = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "168.63.129.16/32",
	"64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16",
	"::/96", "fec0::/10",
)

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// public reports whether an address is one of the public Internet.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsValid() && a.IsGlobalUnicast() && !a.IsPrivate() &&
		!slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

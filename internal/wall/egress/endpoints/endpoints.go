// Package endpoints parses the hosts and ports that a sandbox may reach. It does not import
// net/http, so every policy can check its list.
package endpoints

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Endpoint is a host and port that a sandbox may reach.
type Endpoint struct {
	// Host is a name in canonical form: lower-case ASCII without a final dot.
	Host string
	Port uint16
}

// String returns HOST:PORT.
func (e Endpoint) String() string { return e.Host + ":" + strconv.Itoa(int(e.Port)) }

// ParseAll parses a user's list of HOST:PORT.
func ParseAll(texts []string) ([]Endpoint, error) {
	list := make([]Endpoint, len(texts))
	for i, text := range texts {
		var err error
		if list[i], err = Parse(text); err != nil {
			return nil, fmt.Errorf("cannot use %q as HOST:PORT: %w", text, err)
		}
	}
	return list, nil
}

// Check reports the first string that is not HOST:PORT.
func Check(texts []string) error {
	_, err := ParseAll(texts)
	return err
}

// maxHost is the maximum length of a name, in bytes, according to RFC 1035.
const maxHost = 253

// Parse parses HOST:PORT. A non-ASCII name must be in its xn-- form. It refuses addresses, because
// an endpoint names a service, and the list must not open the host's own network. Models read the
// errors.
func Parse(text string) (Endpoint, error) {
	host, port, ok := strings.Cut(text, ":")
	if !ok {
		return Endpoint{}, errors.New("the port is missing: write it as in example.com:443")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] == '0' || port[0] == '+' {
		return Endpoint{}, errors.New("give a port from 1 to 65535")
	}

	host, err = canonicalHost(host)
	return Endpoint{host, uint16(n)}, err
}

// canonicalHost returns the only accepted spelling of a name. It refuses names that a resolver
// might read as an address in an unusual form, such as 0x7f.1.
func canonicalHost(host string) (string, error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || len(host) > maxHost {
		return "", errors.New("the host name is empty or too long")
	}

	labels := strings.Split(host, ".")
	for _, label := range labels {
		if err := checkLabel(label); err != nil {
			return "", err
		}
	}

	last := labels[len(labels)-1]
	if last[0] >= '0' && last[0] <= '9' {
		return "", errors.New("addresses are not allowed: give a host name")
	}
	if len(labels) == 1 || slices.Contains(localDomains, last) {
		return "", errors.New("names of the local network are not allowed")
	}
	return host, nil
}

// localDomains are the top-level domains of local networks.
var localDomains = []string{"localhost", "local", "internal", "arpa"}

// checkLabel checks a label, the part of a name between two dots.
func checkLabel(label string) error {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return errors.New("the host name is not valid")
	}
	for _, c := range []byte(label) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return errors.New("the host name has characters other than a-z, 0-9 and '-' " +
				"(write names in other scripts in their xn-- form)")
		}
	}
	return nil
}

// special lists addresses that look public but are not, or that contain another address: the
// addresses of RFC 6890 and its registries, and the metadata services of clouds that use public
// addresses.
var special = parsePrefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "168.63.129.16/32",
	"64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16",
	"3fff::/20", "5f00::/16", "::/96", "fec0::/10",
)

func parsePrefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// IsPublic reports whether an address belongs to the public Internet.
func IsPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsValid() && a.IsGlobalUnicast() && !a.IsPrivate() &&
		!slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

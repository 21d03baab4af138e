package schema

import (
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// regexFormat is the format of patterns. Its violations describe the mistake in the pattern.
const regexFormat = "regex"

// formats are the formats that are checked. A time may omit the offset from UTC, and a date-time
// may have a space between date and time, as Python's isoformat and models write them.
var formats = map[string]func(text string) bool{
	"date":      hasLayout("2006-01-02"),
	"date-time": isDateTime,
	"time":      hasLayout("15:04:05.999999999Z07:00", "15:04:05.999999999", "15:04"),
	"duration":  isDuration,
	"period":    isPeriod,

	"email":         isEmail,
	"hostname":      isHostname,
	"ipv4":          isIPv4,
	"ipv6":          isIPv6,
	"uri":           isURI,
	"iri":           isURI,
	"uri-reference": isURIReference,
	"iri-reference": isURIReference,
	"uri-template":  isURITemplate,

	"uuid":                  uuidText.MatchString,
	"semver":                semverText.MatchString,
	"json-pointer":          pointerText.MatchString,
	"relative-json-pointer": relativePointerText.MatchString,
	regexFormat:             isPattern,
}

var (
	uuidText            = lazyregexp.New(`^(?i:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)
	pointerText         = lazyregexp.New(`^(/([^~/]|~[01])*)*$`)
	relativePointerText = lazyregexp.New(`^(0|[1-9][0-9]*)(#|(/([^~/]|~[01])*)*)$`)
	semverText          = lazyregexp.New(`^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}` +
		`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
		`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)
	durationText = lazyregexp.New(
		`^P(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?)$`)
	hostLabel   = lazyregexp.New(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)
	mailbox     = lazyregexp.New("^[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+)*$")
	quotedBox   = lazyregexp.New(`^"[^"\\]*"$`)
	uriVariable = lazyregexp.New(`\{[^{}]*\}`)
)

// hasLayout returns a function that accepts times in one of several layouts.
func hasLayout(layouts ...string) func(string) bool {
	return func(text string) bool {
		for _, layout := range layouts {
			if _, err := time.Parse(layout, text); err == nil {
				return true
			}
		}
		return false
	}
}

var isDateTime = hasLayout(
	"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04", "2006-01-02 15:04")

// isPattern reports whether a string is a regular expression permitted in a schema.
func isPattern(text string) bool {
	_, err := compilePattern(text)
	return err == nil
}

// isDuration reports whether a string is a duration as defined by RFC 3339.
func isDuration(text string) bool {
	return durationText.MatchString(text) && text != "P" && !strings.HasSuffix(text, "T")
}

// isPeriod reports whether a string consists of two times, or of a time and a duration.
func isPeriod(text string) bool {
	start, end, isTwo := strings.Cut(text, "/")
	if !isTwo {
		return false
	}
	return isDateTime(start) && (isDateTime(end) || isDuration(end)) || isDuration(start) && isDateTime(end)
}

func isIPv4(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && address.Is4()
}

func isIPv6(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && address.Is6() && address.Zone() == ""
}

// isHostname reports whether a string is a host name as defined by RFC 1123.
func isHostname(text string) bool {
	text = strings.TrimSuffix(text, ".")
	if len(text) > 253 {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		if !hostLabel.MatchString(label) {
			return false
		}
	}
	return true
}

// isEmail reports whether a string is an email address as defined by RFC 5321.
func isEmail(text string) bool {
	at := strings.LastIndexByte(text, '@')
	if at < 0 || at > 64 || len(text) > 254 {
		return false
	}
	local, domain := text[:at], text[at+1:]
	if !mailbox.MatchString(local) && !quotedBox.MatchString(local) {
		return false
	}

	literal, isOpen := strings.CutPrefix(domain, "[")
	literal, isClosed := strings.CutSuffix(literal, "]")
	if !isOpen || !isClosed {
		return isHostname(domain)
	}
	six, isSix := strings.CutPrefix(literal, "IPv6:")
	return isSix && isIPv6(six) || isIPv4(literal)
}

// parseAddress parses a URL, whose host may be a name or an IP address.
func parseAddress(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, false
	}
	if host := u.Hostname(); strings.Contains(host, ":") {
		return u, strings.HasPrefix(u.Host, "[") && isIPv6(host)
	}
	return u, true
}

func isURI(text string) bool {
	u, ok := parseAddress(text)
	return ok && u.IsAbs()
}

func isURIReference(text string) bool {
	_, ok := parseAddress(text)
	return ok && !strings.Contains(text, `\`)
}

// isURITemplate reports whether a string becomes a URI reference once its variables have values.
func isURITemplate(text string) bool {
	text = uriVariable.ReplaceAllString(text, "x")
	return !strings.ContainsAny(text, "{}") && isURIReference(text)
}

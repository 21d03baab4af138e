package wheels

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	version "github.com/aquasecurity/go-pep440-version"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// lockLine matches a line of a lock. A lock has one line per package, in the format of pip's
// requirements files, with the origin of the wheel after #.

var lockLine = lazyregexp.New(
	`^([a-z0-9-]+)==([A-Za-z0-9.+!_-]+) --hash=sha256:([0-9a-f]{64}) # (\S+) (\S+)$`)

// maxLock bounds a lock, in bytes.
const maxLock = 1 << 20

// FormatLock returns the lock of pins.
func FormatLock(pins []Pin) string {
	var b strings.Builder
	for _, p := range pins {
		fmt.Fprintf(&b, "%s==%s --hash=sha256:%s # %s %s\n", p.Name, p.Version, p.SHA256, p.File, p.URL)
	}
	return b.String()
}

// ReadLock fetches the packages of a lock. The lock must contain all packages that the requirements
// in texts need and the target lacks.
func ReadLock(
	ctx context.Context, lock string, target Target, texts []string, options Options,
) ([]Pin, error) {
	x, err := openIndex(options.Index)
	if err != nil {
		return nil, err
	}
	pins, err := parseLock(lock)
	if err != nil {
		return nil, err
	}
	if err := checkLock(pins, &target, texts); err != nil {
		return nil, err
	}

	r := &resolver{Options: options, target: &target, index: x}
	for i := range pins {
		p := &pins[i]
		from, err := url.Parse(p.URL)
		if err == nil {
			err = checkServer(from)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot fetch %s: %w", p.File, err)
		}
		if p.Path, err = r.fetch(ctx, p.File, from, p.SHA256); err != nil {
			return nil, err
		}
	}
	return pins, nil
}

// parseLock parses the lines of a lock.
func parseLock(lock string) ([]Pin, error) {
	if len(lock) > maxLock {
		return nil, fmt.Errorf("the lock has more than %d bytes", maxLock)
	}

	var pins []Pin
	for line := range strings.Lines(lock) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := lockLine.FindStringSubmatch(line)
		if parts == nil {
			return nil, fmt.Errorf("cannot read the line %.100q of the lock", line)
		}
		name, isWheel := parseWheelName(parts[4])
		if !isWheel || name.name != parts[1] {
			return nil, fmt.Errorf("the file %.100q of the lock is not a wheel of %s", parts[4], parts[1])
		}
		pins = append(pins, Pin{
			Name: parts[1], Version: parts[2], SHA256: parts[3], File: parts[4], URL: parts[5],
		})
	}
	if len(pins) > maxPackages {
		return nil, fmt.Errorf("the lock has more than %d packages", maxPackages)
	}
	return pins, nil
}

// checkLock reports packages that are required but not locked, and packages that do not fit the
// target.
func checkLock(pins []Pin, target *Target, texts []string) error {
	versions := map[string]string{}
	for name, v := range target.Has {
		versions[name] = v
	}
	for _, p := range pins {
		versions[p.Name] = p.Version
		if name, _ := parseWheelName(p.File); target.rank(name.tags) < 0 {
			return fmt.Errorf("the lock file pins %s, which does not run on Python %s on %s",
				p.File, target.Python, target.Machine)
		}
	}

	for _, text := range texts {
		wanted, err := parseRequirement(text)
		if err != nil {
			return err
		}
		v, err := version.Parse(versions[wanted.name])
		if err != nil || !allowed(v, []string{wanted.spec}) {
			return errors.New("the lock does not have " + text + ": remove the lock file to choose versions again")
		}
	}
	return nil
}

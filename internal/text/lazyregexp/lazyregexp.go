// Package lazyregexp compiles regular expressions at their first use. Compiling one in a package
// variable slows down the start of the process, and most commands use few.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that is compiled at its first use. It has the methods of
// [regexp.Regexp] that its users need, and is also safe for concurrent use.
type Regexp struct{ compiled func() *regexp.Regexp }

// New returns a regular expression. An invalid expression causes a panic at the first use.
func New(text string) *Regexp {
	return &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

// MatchString is like [regexp.Regexp.MatchString].
func (re *Regexp) MatchString(s string) bool {
	return re.compiled().MatchString(s)
}

// Match is like [regexp.Regexp.Match].
func (re *Regexp) Match(b []byte) bool {
	return re.compiled().Match(b)
}

// FindIndex is like [regexp.Regexp.FindIndex].
func (re *Regexp) FindIndex(b []byte) []int {
	return re.compiled().FindIndex(b)
}

// FindSubmatch is like [regexp.Regexp.FindSubmatch].
func (re *Regexp) FindSubmatch(b []byte) [][]byte {
	return re.compiled().FindSubmatch(b)
}

// FindString is like [regexp.Regexp.FindString].
func (re *Regexp) FindString(s string) string {
	return re.compiled().FindString(s)
}

// FindStringIndex is like [regexp.Regexp.FindStringIndex].
func (re *Regexp) FindStringIndex(s string) []int {
	return re.compiled().FindStringIndex(s)
}

// FindStringSubmatch is like [regexp.Regexp.FindStringSubmatch].
func (re *Regexp) FindStringSubmatch(s string) []string {
	return re.compiled().FindStringSubmatch(s)
}

// FindStringSubmatchIndex is like [regexp.Regexp.FindStringSubmatchIndex].
func (re *Regexp) FindStringSubmatchIndex(s string) []int {
	return re.compiled().FindStringSubmatchIndex(s)
}

// FindAllString is like [regexp.Regexp.FindAllString].
func (re *Regexp) FindAllString(s string, n int) []string {
	return re.compiled().FindAllString(s, n)
}

// FindAllStringIndex is like [regexp.Regexp.FindAllStringIndex].
func (re *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return re.compiled().FindAllStringIndex(s, n)
}

// FindAllStringSubmatch is like [regexp.Regexp.FindAllStringSubmatch].
func (re *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return re.compiled().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is like [regexp.Regexp.FindAllStringSubmatchIndex].
func (re *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return re.compiled().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAll is like [regexp.Regexp.ReplaceAll].
func (re *Regexp) ReplaceAll(b, by []byte) []byte {
	return re.compiled().ReplaceAll(b, by)
}

// ReplaceAllString is like [regexp.Regexp.ReplaceAllString].
func (re *Regexp) ReplaceAllString(s, by string) string {
	return re.compiled().ReplaceAllString(s, by)
}

// ReplaceAllStringFunc is like [regexp.Regexp.ReplaceAllStringFunc].
func (re *Regexp) ReplaceAllStringFunc(s string, by func(string) string) string {
	return re.compiled().ReplaceAllStringFunc(s, by)
}

// Split is like [regexp.Regexp.Split].
func (re *Regexp) Split(s string, n int) []string {
	return re.compiled().Split(s, n)
}

package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// ErrClosed is the error of every call after Close.
var ErrClosed = errors.New("the graph is closed")

// ErrReadOnly is the error of a query that would write.
var ErrReadOnly = errors.New("the graph is read-only here")

// QueryError reports a query or a file that the engine cannot parse or answer.
type QueryError struct {
	// Message is a sentence without a position.
	Message string
	// Line and Column count from 1. They are 0 if unknown.
	Line, Column int
	// IsSyntax reports whether the text has a syntax error.
	IsSyntax bool
}

// Error returns the position, if known, and the message.
func (e *QueryError) Error() string {
	switch {
	case e.Line == 0:
		return e.Message
	case e.Column == 0:
		return fmt.Sprintf("line %d: %s", e.Line, e.Message)
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// LimitError reports that a call exceeded one of Config's limits. The call did not change the
// graph.
type LimitError struct {
	// Limit is the name of the field in Config: "Timeout", "Fuel", "MaxMemory", …
	Limit string
	// Value is the limit, such as "30s".
	Value string
}

// Error names the limit and its value.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the graph's limit %s (%s) was exceeded", e.Limit, e.Value)
}

// These are the kinds of failures, as numbered in graph/engine/src/failure.rs.
const (
	failedSyntax = iota + 1
	failedQuery
	failedReadOnly
	failedRequest
	failedInput
	failedInferred
	failedIncomplete
)

// errIncomplete means that the engine's library needs the whole graph for a query: see
// readyLibrary.
var errIncomplete = errors.New("the engine's library does not have the whole graph")

// maxMessage bounds a message in characters. A syntax error repeats the query.
const maxMessage = 400

// failure decodes the engine's report of a failure.
func failure(kind byte, d *decoder, config Config) error {
	line, column := d.number(), d.number()
	message := shorten(d.text(), maxMessage)
	if d.err != nil {
		return d.err
	}

	switch kind {
	case failedSyntax, failedQuery:
		return &QueryError{message, int(line), int(column), kind == failedSyntax}
	case failedReadOnly:
		return fmt.Errorf("%w: %s", ErrReadOnly, message)
	case failedInferred:
		return &LimitError{"MaxInferred", fmt.Sprint(config.MaxInferred)}
	case failedIncomplete:
		return errIncomplete
	default:
		return errors.New(message)
	}
}

// Queries in the other language begin with these words.
var (
	sparqlWords = []string{"SELECT", "ASK", "CONSTRUCT", "DESCRIBE", "PREFIX", "BASE"}
	cypherWords = []string{"MATCH", "OPTIONAL", "RETURN", "UNWIND", "WITH", "MERGE", "CREATE", "CALL"}
)

// hint adds to a syntax error that the query seems to be in another language, if the query begins
// with one of that language's words.
func hint(err error, query string, words []string, isOther string) error {
	wrong, ok := errors.AsType[*QueryError](err)
	if !ok || !wrong.IsSyntax {
		return err
	}
	query = strings.TrimSpace(query)
	end := strings.IndexFunc(query, func(c rune) bool { return !unicode.IsLetter(c) })
	if end < 0 || !slices.Contains(words, strings.ToUpper(query[:end])) {
		return err
	}

	told := *wrong
	told.Message += ": " + isOther
	return &told
}

// Package answers answers the functions by which snippets ask models. Its dialects turn the
// calls, in whatever form a model knows them, into a [Query]; [Answers] carries out the query.
// The names of the functions are in internal/snippet/protocol.
package answers

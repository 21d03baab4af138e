// Package answers implements the functions with which snippets ask models. Its dialects turn a
// call, in any form that models use, into a [Query]; [Answers] carries out the query. The names of
// the functions are in internal/snippet/protocol.
package answers

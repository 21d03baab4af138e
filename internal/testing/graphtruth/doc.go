// Package graphtruth tests package graph against the truth of others: the test suites of the
// W3C for SPARQL and OWL 2 RL, openCypher's, and other engines on the same data. It has no
// code that others call.
package graphtruth

// Package graphtruth tests package graph against external references: the W3C's test suites for
// SPARQL and OWL 2 RL, openCypher's suite, and other engines on the same data. It exports no code.
package graphtruth

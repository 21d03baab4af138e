// Package memory stores the findings of runs in a file, as nodes and edges of a knowledge graph.
// The next run loads the file, and its snippets find the earlier findings with magma_view.
//
// The file contains a JSON object on each line, in the format in which Neo4j exports graphs; see
// package graph. Any editor can change it. Concurrent writers wait for each other, and each
// replaces the whole file, so it never contains only a part of a run's findings.
package memory

// Package memory stores the findings of runs in a file, as nodes and edges of a knowledge graph.
// The next run loads the file, and its snippets find the earlier findings with magma_view.
//
// The file contains a JSON object on each line, as Neo4j exports graphs: see package graph. Any
// editor can change it. Programs that write at the same time wait for each other, and the file is
// replaced as a whole: it never contains half of a run's findings.
package memory

// Package memory stores the findings of runs in a file, as nodes and edges of a knowledge graph. The
// next run loads the file, and its snippets find the earlier ones by magma_view.
//
// The file has a JSON object in each line, as Neo4j exports graphs: see package graph. It may be
// changed with any editor. Programs that remember at the same time wait for each other, and the
// file is replaced as a whole: it never has half of what a run found.
package memory

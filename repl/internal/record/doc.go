// Package record writes the record of a run: a folder with a trajectory for each loop, and one
// file of events for the whole tree.
package record

// Package record writes the record of a run: for each loop a folder with a trajectory,
// for the whole tree one file of events.
package record

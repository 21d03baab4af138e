// Package keep stores what outlives a process. The store has the logs of runs and sessions; the
// run log gives their entries a meaning. Snapshots, trajectories and skill books are files of
// their own. Damage and dbfile find what is damaged, and save the rest. The records of a server
// are in server, and what a session may save is in internal/snippet.
package keep

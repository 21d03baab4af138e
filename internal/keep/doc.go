// Package keep groups the packages for data that outlives a process. The store holds the logs of
// runs and sessions; the run log gives their entries a meaning. Snapshots, trajectories and
// skillbooks have their own files. Damage and dbfile find damaged data and save the rest. The
// records of a server are in server, and what a session may save is in internal/snippet.
package keep

// Package keep groups the packages for data that outlives a process. The store holds the logs of
// runs and sessions; the run log gives their entries a meaning. Objects are large bytes, by their
// SHA-256. Snapshots, trajectories and skillbooks have their own files. Damage and dbfile find
// damaged data and save the rest. Package server keeps the records of a server, and
// internal/snippet defines what a session may save.
package keep

// Package live shows the progress of a run on stderr.
package live

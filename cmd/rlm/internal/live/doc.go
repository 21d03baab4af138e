// Package live shows a run on stderr while it goes on.
package live

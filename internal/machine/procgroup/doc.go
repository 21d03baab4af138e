// Package procgroup ends programs together with the programs that they started.
package procgroup

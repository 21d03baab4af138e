// Package loops contains the commands in which models work: run, reflect, reflexion, distill,
// workflow and hook.
package loops

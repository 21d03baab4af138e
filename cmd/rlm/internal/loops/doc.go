// Package loops has the commands that let models work: run, reflect, reflexion, distill, workflow and hook.
package loops

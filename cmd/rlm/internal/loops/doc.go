// Package loops contains the commands that use models: run, reflect, reflexion, distill, workflow
// and hook.
package loops

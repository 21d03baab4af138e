// Package flow checks and runs workflow files: the tree of a file, its nodes, the
// contract of actions, and what an action can ask of the run.
package flow

// Package flow checks and runs workflow files. It holds the tree of a file, its nodes,
// the contract of actions, and the services of a run for its actions.
package flow

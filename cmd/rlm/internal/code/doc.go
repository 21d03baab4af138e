// Package code contains the commands that run the caller's code or queries without a model: exec,
// explain and graph.
package code

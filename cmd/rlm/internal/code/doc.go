// Package code has the commands that run code or queries of the caller, without a model: exec, explain and graph.
package code

// Package services contains the commands that serve other programs: serve and its keys, mcp and
// connect.
package services

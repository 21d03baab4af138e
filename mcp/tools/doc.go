// Package tools makes the tools of MCP servers available to snippets.
//
// A file lists the servers, in the format of Claude, Cursor and VS Code. [Start] starts or connects
// to the servers, and [Servers.Tools] returns the host functions for their tools. [Servers.Python]
// defines one class for each server, so that snippets can write server.tool(argument=...).
//
// Servers are not trusted, so their messages are bounded. Their environment and headers are hidden
// from the guest.
package tools

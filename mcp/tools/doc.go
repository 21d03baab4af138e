// Package tools offers the tools of MCP servers to snippets.
//
// A file lists the servers, in the format of Claude, Cursor and VS Code. [Start] starts or reaches
// them, and [Servers.Tools] returns the host functions for their tools. [Servers.Python] gives
// snippets one class for each server, so that they write server.tool(argument=...).
//
// Servers are foreign: what they send is bounded, and the guest sees neither their environment nor
// their headers.
package tools

// Package mcp makes sandboxes, loops and the tools of other MCP servers available to MCP hosts.
//
// A host opens a handle, which is a session with contexts, and then runs snippets and asks
// questions in it. [New] makes the server; [Server.ServeStdio] and [Server.Handler] serve it.
//
// Clients are models, so their code runs in sandboxes, they can read files only below the roots
// that the user names, and the number and idle time of their handles are bounded.
package mcp

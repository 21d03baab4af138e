// Package mcp offers sandboxes, loops and the tools of other MCP servers to MCP hosts.
//
// A host opens a handle, which is a session with contexts; in it, the host runs snippets and asks
// questions. [New] makes the server, [Server.ServeStdio] and [Server.Handler] serve it.
//
// Clients are models: their code runs in sandboxes, they read files only below the roots that the
// user names, and their handles are bounded in number and end when idle.
package mcp

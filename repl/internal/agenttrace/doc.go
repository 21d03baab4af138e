// Package agenttrace reads the traces of other agents' work, in the formats of agents and their
// libraries, and binds them in a session. Snippets explore a trace with the classes in guest.py;
// the host only reads it.
package agenttrace

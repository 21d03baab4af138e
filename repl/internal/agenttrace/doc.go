// Package agenttrace reads agent traces, in the formats of agents and their libraries, and binds
// them to variables of a session. Snippets explore a trace with the classes in guest.py; the host
// only reads it.
package agenttrace

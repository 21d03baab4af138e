// Package agenttrace reads the records of other agents' work, in the forms in which
// agents and their libraries write them, and gives them to a session. The classes by
// which snippets explore a trace are guest.py; the host only reads.
package agenttrace

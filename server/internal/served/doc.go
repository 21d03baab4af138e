// Package served tests a server from outside: it attacks tiers through the API, and takes away what
// the server needs.
package served

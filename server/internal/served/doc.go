// Package served tests a server from outside: it attacks tiers through the API, and takes away
// resources that the server needs.
package served

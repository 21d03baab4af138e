// Package served tests a server from outside: it attacks tier wasm through the API, and cuts off
// Docker's daemon during a session.
package served

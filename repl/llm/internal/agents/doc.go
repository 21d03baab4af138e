// Package agents asks agent programs for replies, with the Agent Client Protocol over stdin and
// stdout. The programs belong to the user, who has logged in to them, so they need no key here.
//
// An [Agent] starts its program at the first call and keeps it running. Each call is a session of
// the protocol, in an empty folder that is removed afterwards. The program gets no files, no
// terminals and no permissions from its client. Its owner decides what its own tools do.
package agents

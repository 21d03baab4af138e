// Package agents asks agent programs for replies, by the Agent Client Protocol over stdin and
// stdout. The programs are those of the user, who has logged in with them: they need no key here.
//
// An [Agent] starts its program at the first call and keeps it. Each call is a session of the
// protocol, in an empty folder that is removed afterwards. The program gets no files, no terminals
// and no permissions from its client. Its owner decides what its own tools do.
package agents

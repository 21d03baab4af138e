// Package conversation edits the messages between a loop and its model: it counts their tokens,
// drops the least important turns, and appends replies.
package conversation

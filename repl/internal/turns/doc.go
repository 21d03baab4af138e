// Package turns makes a turn of a loop out of a model's reply: it extracts code and
// answers, runs the code in a session, and writes the feedback.
package turns

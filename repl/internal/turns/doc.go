// Package turns turns a model's reply into a turn of a loop: it extracts code and answers, runs
// the code in a session, and writes the feedback.
package turns

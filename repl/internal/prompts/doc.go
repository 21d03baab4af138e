// Package prompts fills in the prompts of loops, which are templates in files, and presents
// untrusted text in them as data.
package prompts

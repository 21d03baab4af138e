// Package prompts fills the prompts of loops, which are templates in files, and shows
// foreign text in them as data.
package prompts

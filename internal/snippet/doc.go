// Package snippet has the life of a snippet, for all tiers and both languages. Session runs it:
// host calls, metering, output, limits, restore, loss. The other packages are what it needs:
// frames and values on the wire, labels, files of /out, and the queues that share places
// (fairqueue) and processors (slots). What is special to a language is in internal/python and
// internal/golang. What is special to a tier is in tiers.
package snippet

// Package snippet groups the packages that run snippets, for all tiers and both languages. Package
// session runs a snippet: host calls, metering, output, limits, restore, loss. The other packages
// support it: frames and values on the wire, labels, files of /out, and the queues that share
// places (fairqueue) and processors (slots). Language-specific code is in internal/python and
// internal/golang. Tier-specific code is in tiers.
package snippet

// Package snippet groups the packages for a snippet's life, for all tiers and both languages.
// Session runs a snippet: host calls, metering, output, limits, restore, loss. The other packages
// support it: frames and values on the wire, labels, files of /out, and the queues that share
// places (fairqueue) and processors (slots). Language-specific code is in internal/python and
// internal/golang. Tier-specific code is in tiers.
package snippet

// Package skillbook reads, renders and writes skillbooks of the Agentic Context Engine: the
// strategies that an agent has learned, in sections, with counts of how often each of them helped.
// Files are not trusted, so they are bounded and decoded strictly.
package skillbook

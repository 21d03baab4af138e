// Package skillbook reads, renders and writes skillbooks of the Agentic Context Engine: the
// strategies that an agent has learned, in sections, with counts of how often each of them
// helped. A file comes from outside, so it is bounded and decoded strictly.
package skillbook

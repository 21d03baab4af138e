// Package plan finds the cheapest tier that can run a snippet and runs it there. The analysers
// read a snippet without running it. The runner follows the plans of package router: it probes,
// moves sessions, and repeats rejected snippets. Results describes how a snippet ended, as JSON.
// The policy of routes is in package router, and the tiers are in tiers.
package plan

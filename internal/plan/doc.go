// Package plan groups the packages that find the cheapest tier that can run a snippet and run it
// there. The analysers read a snippet without running it. The runner follows the plans of package
// router: it probes tiers, moves sessions, and repeats rejected snippets. Package results describes
// how a snippet ended, as JSON. The routing policy is in package router, and the tiers are in
// tiers.
package plan

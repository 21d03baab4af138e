// Package testing has what only tests and scripts import. Tiersuite, gosuite, storetest and
// escapes are the suites that each tier and store must pass. Archtest holds the code against
// docs/architecture.md. The other packages bring what tests need: models, browsers, indexes, small
// disks. The suite for authors of other tiers is tiers/tiertest.
package testing
